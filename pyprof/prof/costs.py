"""The cost of an op call, shared among its kernels: as much as the call cost, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.gpu.kernel_roles import rank, role
from pyprof.gpu.role_rules import Role
from pyprof.ops.model_config import LAYER_TYPES
from pyprof.prof.apportion import apportion, parts
from pyprof.prof.calls import op_calls
from pyprof.prof.calls.attributed_call import MOVES, PRODUCTS, family
from pyprof.prof.calls.call_context import with_collectives, with_outputs, with_settings
from pyprof.prof.calls.op_calls import (
    SPARSE,
    FillCosts,
    exclusive_totals,
    nested_products,
    propagate_unknown,
)
from pyprof.prof.calls.op_choice import choose, own_flops
from pyprof.prof.kernels.autotuning import autotuning_trials
from pyprof.prof.kernels.kernel_context import distinct_contexts
from pyprof.prof.kernels.name_hints import by_name
from pyprof.records.records import DictionaryColumn, combinations, distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.ops import Cost
    from pyprof.ops.model_config import ModelConfig
    from pyprof.prof.calls.attributed_call import AttributedCall
    from pyprof.prof.kernels.kernel_context import KernelContext
    from pyprof.prof.kernels.name_hints import NameHints
    from pyprof.records.records import Records


_HELPS = 1 << 20
"""The rank of a kernel that only helps."""

_MAX_KERNELS = 1 << 16
"""Calls with more kernels than this are costed as if they had this many."""

_GRADIENTS = ("dgrad", "wgrad")

_KNOWN = ""
_GRAPH = (
    "the kernels of a CUDA graph launch are not in the capture: capture with "
    "nsys profile --cuda-graph-trace=node"
)
_NO_SIZE = "the number of bytes copied or set is not recorded"
_FIRST_REASONS = (_KNOWN, _GRAPH, _NO_SIZE)
_INSIDE = "inside it: "
IMPOSSIBLE = (
    f"above the device's peak if all keys are seen, so fewer are (a window?): {LAYER_TYPES}"
)
UNEXPLAINED = "unknown reason: its formula gives none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What every row costs. MISSING if unknown, with the reason."""

    flops: Int64Array
    bytes: Int64Array
    reason: list[str]
    """Distinct reasons; "" for none."""
    reason_of: IntArray
    params: list[Mapping[str, object]]
    params_of: IntArray
    via: list[str]
    """What each of `params` was computed from besides the call itself; "" for nothing."""
    call: IntArray
    """Number of the op call that each row works for."""
    work: list[AttributedCall]
    work_of: IntArray
    helper: NDArray[np.bool_]
    """Rows that only help their op call's arithmetic, and autotuning runs."""
    autotuning: NDArray[np.bool_]
    """Rows that cuDNN's benchmark ran only as trials."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of a capture, what each works for, and what follows from its name and kind."""

    records: Records
    contexts: list[KernelContext]
    """The distinct texts around kernels."""
    context_of: IntArray
    work: list[AttributedCall]
    work_of: IntArray
    family: list[str]
    """The family of each work."""
    name: DictionaryColumn
    role: list[Role]
    """The role of each name."""
    kind: DictionaryColumn
    """What each row is, as `schema.KINDS` names it."""
    own_by_context: list[int]
    """FLOPs of the innermost op of each context on the CPU, whatever it works for."""

    @property
    def own_flops(self) -> Int64Array:
        """FLOPs of each row itself."""
        return np.array(self.own_by_context, np.int64).take(self.context_of)

    @cached_property
    def on_cpu(self) -> Mask:
        """Rows that are ops on the CPU."""
        return self.is_one(schema.CPU)

    @cached_property
    def kernel(self) -> Mask:
        """Rows that run an op's code: on a GPU, or on the CPU of a capture without one."""
        return self.is_one(schema.KERNEL, schema.CPU)

    def is_one(self, *kinds: int) -> Mask:
        """Mask of the rows of these kinds, as `schema.KINDS` numbers them."""
        names = {schema.KINDS[kind] for kind in kinds}
        return np.array([name in names for name in self.kind.values], bool).take(self.kind.index)

    @cached_property
    def chosen(self) -> IntArray:
        """The id of the call that each row works for; -1 for a row that is a call of its own."""
        return op_calls.chosen(self.records, self.work, self.work_of)

    @property
    def weight(self) -> Int64Array:
        """Time on the GPU, ns; at least 1, so that each row has a part."""
        return np.maximum(self.records.numpy("kDuration"), 1)

    def working(self, test: Callable[[AttributedCall, str], bool]) -> Mask:
        """Mask of the rows whose op call and its family pass a test."""
        passed = [test(*pair) for pair in zip(self.work, self.family, strict=True)]
        return np.array(passed, bool).take(self.work_of)

    def named(self, *roles: Role) -> Mask:
        """Mask of the rows whose kernel has one of these roles."""
        return np.array([role in roles for role in self.role], bool).take(self.name.index)


def share_costs(records: Records, model: ModelConfig | None = None) -> Costs:
    """Go through the stages of costing; `Table.roofline` places the rows that come out.

    `model` supplies the sizes that no capture holds. `pyprof prof --explain` shows what each stage
    saw and decided; see `pyprof.analysis.explain`.
    """
    rows = choose_op_calls(records, model)
    grouping = group_kernels(rows)
    call_costs = cost_op_calls(rows, grouping)
    return apportion_costs(rows, grouping, call_costs)


def choose_op_calls(records: Records, model: ModelConfig | None = None) -> Rows:
    """Choose once per distinct context: the texts around a kernel."""
    context_of, contexts = with_settings(records, *distinct_contexts(records), model)
    chosen = [choose(context) for context in contexts]
    work_of, works = with_outputs(records, context_of, contexts, chosen)
    work_of, works = with_collectives(records, work_of, works)
    name = records.dictionary("kLongName")
    alone = [_number(own_flops(context)) if context.on_cpu else MISSING for context in contexts]
    kind = records.dictionary("kind")
    values = [*kind.values, schema.KINDS[schema.KERNEL]]  # the original's files hold kernels only
    kinds = DictionaryColumn(np.where(kind.index < 0, len(kind.values), kind.index), values)
    return Rows(
        records=records,
        contexts=contexts,
        context_of=context_of,
        work=works,
        work_of=work_of,
        family=[family(work) for work in works],
        name=name,
        role=[role(text) for text in name.values],
        kind=kinds,
        own_by_context=alone,
    )


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which rows belong to one op call, and what they do for it."""

    call: IntArray
    """Number of the op call of each row."""
    arithmetic: Mask
    """Rows that do their call's arithmetic, and so share its cost."""
    autotuning: Mask
    """Rows that cuDNN's benchmark ran only as trials."""
    kernels: IntArray
    """How many rows do the arithmetic of each row's call."""


def group_kernels(rows: Rows) -> Grouping:
    """Number the op calls; of a call's kernels those of the likeliest role do its arithmetic."""
    ranks = _ranks(rows)
    if rows.on_cpu.any():
        ranks = np.where(rows.on_cpu, rows.own_flops == 0, ranks)
    call = op_calls.number(
        rows.records, rows.work, rows.work_of, rows.chosen, computes=ranks < _HELPS
    ).astype(np.int64, copy=False)  # an index of 32 bits would be widened each time it is used
    autotuning = _autotuning(rows, call)
    ranks[autotuning] = _HELPS
    calls = int(call.max(initial=-1)) + 1
    best = np.full(calls, _HELPS, np.int32)
    np.minimum.at(best, call[rows.kernel], ranks[rows.kernel])
    arithmetic = rows.kernel & (ranks == best[call])
    kernels = np.bincount(call[arithmetic], minlength=calls).astype(np.int32)[call]
    return Grouping(call, arithmetic, autotuning, kernels)


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What op calls cost as a whole. Arrays: one value per row, MISSING if there is none."""

    costs: list[Cost]
    cost_of: IntArray
    hints: list[NameHints]
    """Facts from the names of a call's kernels that no text has."""
    hint_of: IntArray

    def of_rows(self, name: str) -> Int64Array:
        """One figure of each row's call: `flops`, `bytes`, `written` or `added`."""
        figures = [_number(getattr(cost, name)) for cost in self.costs]
        return np.array(figures, np.int64).take(self.cost_of)


def cost_op_calls(rows: Rows, grouping: Grouping) -> CallCosts:
    """Cost each distinct op call, by the number and the names of its kernels."""
    lacks_dtype = rows.working(lambda work, _: work.lacks_dtype) & grouping.arithmetic
    moving = lacks_dtype & rows.working(lambda _, family: family in MOVES)
    number, hints = by_name(rows.name, grouping.call, lacks_dtype, moving, rows.kernel)
    # One op on the CPU may do what takes two kernels on a GPU.
    kernels = np.where(rows.on_cpu, 0, np.minimum(grouping.kernels, _MAX_KERNELS))
    first, cost_of = combinations(rows.work_of, number, kernels)
    costs = [
        rows.work[rows.work_of[row]].cost(int(kernels[row]) or None, hints[number[row]])
        for row in first.tolist()
    ]
    return CallCosts(costs, cost_of, hints, number)


def apportion_costs(rows: Rows, grouping: Grouping, call_costs: CallCosts) -> Costs:
    """Share the cost of each call among the rows that do its arithmetic; say why if impossible."""
    call, helper = grouping.call, rows.kernel & ~grouping.arithmetic
    reasons = list(dict.fromkeys([*_FIRST_REASONS, *(cost.reason for cost in call_costs.costs)]))
    index = {reason: number for number, reason in enumerate(reasons)}
    flops, moved = call_costs.of_rows("flops"), call_costs.of_rows("bytes")
    weight = _weights(rows, grouping, call_costs, flops)
    inner = _charged_inside(rows, call)
    left_flops, left_bytes = (exclusive_totals(total, call, inner) for total in (flops, moved))
    shared_flops, shared_bytes = (
        apportion(left, weight, call) for left in (left_flops, left_bytes)
    )
    shared_flops[helper] = np.where(flops[helper] == MISSING, MISSING, 0)
    shared_bytes[helper] = MISSING
    reason_of = np.array([index[cost.reason] for cost in call_costs.costs], np.int32).take(
        call_costs.cost_of
    )
    for total in (flops, moved):
        propagate_unknown(reason_of, total, call, inner, len(reasons))
    reasons += [f"{_INSIDE}{reason}" for reason in reasons]
    _memory(rows, shared_flops, shared_bytes, reason_of)
    fills = _fill_costs(
        rows, call, weight, helper, (call_costs.of_rows("written"), call_costs.of_rows("added"))
    )
    moved = fills.charge(left_bytes, shared_bytes, rows.chosen, op_calls.around(rows.records))
    explain((shared_flops < 0) | ((moved < 0) & ~helper), reasons, reason_of)
    return Costs(
        flops=shared_flops,
        bytes=moved,
        reason=reasons,
        reason_of=reason_of,
        params=[cost.params for cost in call_costs.costs],
        params_of=call_costs.cost_of,
        via=[cost.via for cost in call_costs.costs],
        call=call,
        work=rows.work,
        work_of=rows.work_of,
        helper=helper,
        autotuning=grouping.autotuning,
    )


def without_impossible(costs: Costs, rows: Int64Array) -> Costs:
    """Return costs in which those of the op calls of some rows are unknown."""
    if not len(rows):
        return costs
    unknown = np.isin(costs.call, costs.call[rows])
    reason_of = np.where(unknown, len(costs.reason), costs.reason_of)
    flops, moved = (np.where(unknown, MISSING, part) for part in (costs.flops, costs.bytes))
    return replace(
        costs, flops=flops, bytes=moved, reason=[*costs.reason, IMPOSSIBLE], reason_of=reason_of
    )


def explain(unknown: Mask, reasons: list[str], reason_of: IntArray) -> None:
    """Set a general reason for unknown rows that have none."""
    silent = np.array([reason.removeprefix(_INSIDE) == "" for reason in reasons]).take(reason_of)
    reason_of[unknown & silent] = len(reasons)
    reasons.append(UNEXPLAINED)


def _autotuning(rows: Rows, call: IntArray) -> Mask:
    """Mask of the kernels that a convolution's call ran only to choose the fastest.

    Calls without recorded shapes are left out: it is unknown which of them are alike.
    """
    conv = rows.working(lambda work, family: family == "conv" and work.has_shapes) & rows.kernel
    if not conv.any():
        return conv
    return autotuning_trials(
        rows.records, rows.work_of, call, conv, rows.named(Role.CONV, Role.GEMM)
    )


def _weights(
    rows: Rows, grouping: Grouping, call_costs: CallCosts, flops: Int64Array
) -> Int64Array:
    """Weigh each kernel's part in its call's arithmetic: by duration, with exceptions.

    The two gradients of a product need the same FLOPs, whichever kernel is faster; calls may be
    divided by stage; and ops on the CPU have FLOPs of their own. `flops` are those of each row's
    call.
    """
    products = rows.working(lambda work, family: work.gradient and family in PRODUCTS)
    alike = products & (grouping.kernels == len(_GRADIENTS))
    weight = np.where(grouping.arithmetic, np.where(alike, 1, rows.weight), 0)
    stages = [cost.stages for cost in call_costs.costs]
    weight = _by_stage(weight, stages, call_costs.cost_of, grouping.call, grouping.kernels)
    if not rows.on_cpu.any():
        return weight
    own = parts(rows.own_flops, flops, grouping.call, grouping.arithmetic)
    return np.where(rows.on_cpu, own, weight)


def _by_stage(
    weight: Int64Array,
    stages: Sequence[tuple[int, ...]],
    cost_of: IntArray,
    call: IntArray,
    kernels: IntArray,
) -> Int64Array:
    """Weigh by stage, one kernel per stage, the kernels of calls that are not divided by time.

    Rows without weight do none of the arithmetic.
    """
    count = np.array([len(each) for each in stages], np.int64).take(cost_of)
    rows = np.flatnonzero((count > 0) & (count == kernels) & (weight > 0))
    if not len(rows):
        return weight
    rows = rows[np.argsort(call[rows], kind="stable")]  # of a call, in the order of their start
    first = np.flatnonzero(np.diff(call[rows], prepend=MISSING))
    index = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
    most = max(map(len, stages))
    table = np.array([[*each, *(0,) * (most - len(each))] for each in stages], np.int64)
    stage_weight = weight.copy()
    stage_weight[rows] = table[cost_of[rows], index]
    return stage_weight


def _number(value: int | None) -> int:
    return value if value is not None and value < 1 << 63 else MISSING


def _fill_costs(
    rows: Rows,
    call: IntArray,
    weight: Int64Array,
    helper: Mask,
    parts: tuple[Int64Array, Int64Array],
) -> FillCosts:
    """Find the rows that fill memory or handle a bias, and those that move fewer bytes for it.

    `parts` are the bytes of what a row's call writes, and of what is moved for its bias.
    """
    written, added = parts
    sparse = rows.working(lambda work, family: family in SPARSE and work.gradient) & (written > 0)
    product = rows.working(lambda _, family: family in PRODUCTS) & (added > 0)
    filling = rows.working(lambda _, family: family == "fill") & (weight > 0)
    helps = (sparse & rows.named(Role.FILL)) | _bias(rows, call, product & helper)
    return FillCosts(
        call=call,
        part=np.where(product, added, written),
        weight=np.where(sparse | product, weight, 0),
        own=filling | (rows.is_one(schema.MEMSET)),
        helps=np.where(helper & helps, rows.weight, 0),
    )


def _bias(rows: Rows, call: IntArray, helper: Mask) -> Mask:
    """Mask of the helpers that handle a product's bias: in each call, the first that can.

    cuBLAS adds the product to a copy of the bias. After a convolution the bias is added element by
    element. Its gradient is a sum in both cases.
    """
    gradient = rows.working(lambda work, _: work.gradient)
    copies = rows.named(Role.COPY) & rows.working(lambda _, family: family == "gemm")
    can = np.where(gradient, rows.named(Role.REDUCE), copies | rows.named(Role.ELEMENTWISE))
    served = np.zeros(len(call), bool)
    first = np.flatnonzero(helper & can)
    served[first[distinct(call[first])[0]]] = True
    return served


def _memory(rows: Rows, flops: Int64Array, moved: Int64Array, reason_of: IntArray) -> None:
    """Cost copies and sets by their recorded bytes; graph launches hide their work."""
    size = rows.records.numpy("bytes")
    name = rows.records.dictionary("kShortName")
    twice = np.array([("DtoD" in text or "PtoP" in text) for text in name.values] + [False])
    memory = rows.is_one(schema.MEMCPY, schema.MEMSET)
    moved[memory] = np.where(size < 0, MISSING, size * np.where(twice[name.index], 2, 1))[memory]
    flops[memory] = 0
    reason_of[memory] = _FIRST_REASONS.index(_KNOWN)
    reason_of[memory & (size < 0)] = _FIRST_REASONS.index(_NO_SIZE)
    graph = ~rows.kernel & ~memory
    flops[graph] = moved[graph] = MISSING
    reason_of[graph] = _FIRST_REASONS.index(_GRAPH)


def _ranks(rows: Rows) -> IntArray:
    """Rank each row's kernel among those that may do its op's arithmetic; 0 is the likeliest."""
    first, index = combinations(rows.work_of, rows.name.index)
    rank_of = [
        rank(rows.role[rows.name.index[row]], rows.family[rows.work_of[row]])
        for row in first.tolist()
    ]
    ranks = [_HELPS if place is None else place for place in rank_of]
    return np.array(ranks, np.int32).take(index)


def _charged_inside(rows: Rows, call: IntArray) -> Int64Array:
    """Find charged calls inside of charged calls: (inner, outer) call numbers.

    On the GPU these are products inside of products, on the CPU any call inside of another. A
    memset inside an op costs what it moves, not what the op costs.
    """
    ids = op_calls.around(rows.records)
    parts = (rows.working(lambda _, family: family in PRODUCTS) & rows.kernel) | rows.on_cpu
    if ids is None or not parts.any():
        return np.zeros((0, 2), np.int64)
    return nested_products(*ids, rows.chosen, call, parts)
