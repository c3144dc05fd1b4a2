"""The cost of an op call, shared among its kernels: as much as the call cost, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.gpu.kernel_dtypes import casts, data_type
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
from pyprof.prof.calls.op_choice import choose, own_dtypes, own_flops
from pyprof.prof.kernels.autotuning import autotuning_trials
from pyprof.prof.kernels.kernel_context import distinct_contexts
from pyprof.prof.kernels.name_hints import by_name
from pyprof.records.records import DictionaryColumn, combinations, distinct

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.ops.model_config import ModelConfig
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
"""Precedes the reason if the unknown cost is that of an op called inside the row's."""
IMPOSSIBLE = (
    f"above the device's peak if all keys are seen, so fewer are (a window?): {LAYER_TYPES}"
)
UNEXPLAINED = "unknown reason: its formula gives none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What every row costs. MISSING if unknown, with the reason."""

    flops: Int64Array
    bytes: Int64Array
    reason: DictionaryColumn
    """Texts; "" for none."""
    params: DictionaryColumn
    """What the cost of each row's op call was computed from, by name."""
    via: DictionaryColumn
    """What `params` were computed from besides the call itself; "" for nothing."""
    call: IntArray
    """Number of the op call that each row works for."""
    work: DictionaryColumn
    """The `AttributedCall` that each row works for."""
    helper: Mask
    """Rows that only help their op call's arithmetic, and autotuning runs."""
    autotuning: Mask
    """Rows that cuDNN's benchmark ran only as trials."""

    @property
    def unknown(self) -> Mask:
        """Rows whose FLOPs or bytes are unknown; bytes of helpers are those of their op call."""
        return np.asarray((self.flops < 0) | ((self.bytes < 0) & ~self.helper))

    @property
    def why_unknown(self) -> DictionaryColumn:
        """The reason of each of these rows; null for rows of known cost."""
        return DictionaryColumn(
            np.where(self.unknown, self.reason.index, MISSING), self.reason.values
        )


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows of a capture, what each works for, and what follows from its name and kind."""

    records: Records
    context: DictionaryColumn
    """The `KernelContext` of each row."""
    work: DictionaryColumn
    """The `AttributedCall` that each row works for."""
    family: DictionaryColumn
    """The family of each work."""
    name: DictionaryColumn
    role: DictionaryColumn
    """The role of each name."""

    @cached_property
    def own_flops(self) -> Int64Array:
        """FLOPs of the innermost op of each row on the CPU, whatever it works for."""
        return self.context.numpy(
            lambda each: _number(own_flops(each)) if each.on_cpu else MISSING, MISSING
        )

    @cached_property
    def dtype(self) -> DictionaryColumn:
        """The floating type that each row works on; None if its name, or CPU op, does not tell."""
        if not self.on_cpu.all():
            return self.name.map(data_type)
        own = self.context.map(own_dtypes)
        return own.map(lambda dtypes: min(dtypes) if len(dtypes) == 1 else None)

    @cached_property
    def casts(self) -> Mask:
        """Rows that copy a tensor to another type."""
        on_cpu = self.context.matches(lambda each: each.on_cpu and len(own_dtypes(each)) > 1)
        return on_cpu | self.name.matches(casts)

    @cached_property
    def on_cpu(self) -> Mask:
        """Rows that are ops on the CPU."""
        return self.records.of_kind(schema.CPU)

    @cached_property
    def kernel(self) -> Mask:
        """Rows that run an op's code: on a GPU, or on the CPU of a capture without one."""
        return self.records.of_kind(schema.KERNEL, schema.CPU, None)

    @cached_property
    def chosen(self) -> IntArray:
        """The id of the call that each row works for; -1 for a row that is a call of its own."""
        return op_calls.chosen(self.records, self.work)

    @property
    def weight(self) -> Int64Array:
        """Time on the GPU, ns; at least 1, so that each row has a part."""
        return np.maximum(self.records.numpy("kDuration"), 1)


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
    context = with_settings(records, distinct_contexts(records), model)
    work = with_outputs(records, context, context.map(choose))
    work = with_collectives(records, work)
    name = records.dictionary("kLongName")
    return Rows(
        records=records,
        context=context,
        work=work,
        family=work.map(family),
        name=name,
        role=name.map(role),
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
    first, index = combinations(rows.work.index, rows.name.index)
    places = [rank(rows.role.at(row), rows.family.at(row)) for row in first.tolist()]
    ranks = np.array([_HELPS if place is None else place for place in places], np.int32).take(index)
    if rows.on_cpu.any():
        ranks = np.where(rows.on_cpu, rows.own_flops == 0, ranks)
    call = op_calls.number(rows.records, rows.work, rows.chosen, computes=ranks < _HELPS).astype(
        np.int64, copy=False
    )  # an index of 32 bits would be widened each time it is used
    # calls without recorded shapes are left out: it is unknown which of them are alike
    autotuning = rows.family.is_in("conv") & rows.work.matches(attrgetter("has_shapes"))
    autotuning &= rows.kernel
    if autotuning.any():
        products = rows.role.is_in(Role.CONV, Role.GEMM)
        autotuning = autotuning_trials(rows.records, rows.work.index, call, autotuning, products)
    ranks[autotuning] = _HELPS
    calls = int(call.max(initial=-1)) + 1
    best = np.full(calls, _HELPS, np.int32)
    np.minimum.at(best, call[rows.kernel], ranks[rows.kernel])
    arithmetic = rows.kernel & (ranks == best[call])
    kernels = np.bincount(call[arithmetic], minlength=calls).astype(np.int32)[call]
    return Grouping(call, arithmetic, autotuning, kernels)


@dataclass(frozen=True, slots=True)
class CallCosts:
    """What op calls cost as a whole."""

    cost: DictionaryColumn
    """The `Cost` of each row's call."""
    hint: DictionaryColumn
    """The `NameHints` of each row's call: facts from its kernels' names that no text has."""

    def of_rows(self, name: str) -> Int64Array:
        """One figure of each row's call: `flops`, `bytes`, `written` or `added`; else MISSING."""
        return self.cost.numpy(lambda cost: _number(getattr(cost, name)), MISSING)


def cost_op_calls(rows: Rows, grouping: Grouping) -> CallCosts:
    """Cost each distinct op call, by the number and the names of its kernels."""
    lacks_dtype = rows.work.matches(attrgetter("lacks_dtype")) & grouping.arithmetic
    moving = lacks_dtype & rows.family.is_in(*MOVES)
    may_be_cast = rows.work.matches(attrgetter("may_be_cast")) & grouping.arithmetic
    typed = (lacks_dtype | may_be_cast) & ~moving
    hint = by_name(rows.name, rows.dtype, grouping.call, typed, moving, rows.kernel)
    # One op on the CPU may do what takes two kernels on a GPU.
    kernels = np.where(rows.on_cpu, 0, np.minimum(grouping.kernels, _MAX_KERNELS))
    # A copy to another type inside a marker: one of its types is not that of the marker's tensors.
    guessed = rows.casts & rows.work.matches(lambda work: work.dtype and family(work) == "copy")
    first, number = combinations(rows.work.index, hint.index, kernels, guessed.astype(np.int8))
    costs = [
        (replace(rows.work.at(row), dtype=None) if guessed[row] else rows.work.at(row)).cost(
            int(kernels[row]) or None, hint.at(row)
        )
        for row in first.tolist()
    ]
    return CallCosts(DictionaryColumn(number, costs), hint)


def apportion_costs(rows: Rows, grouping: Grouping, call_costs: CallCosts) -> Costs:
    """Share the cost of each call among the rows that do its arithmetic; say why if impossible."""
    call, helper = grouping.call, rows.kernel & ~grouping.arithmetic
    cost = call_costs.cost
    reasons = list(dict.fromkeys([*_FIRST_REASONS, *(each.reason for each in cost.values)]))
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
    reason_of = cost.numpy(lambda each: index[each.reason], MISSING).astype(np.int32)
    for total in (flops, moved):
        propagate_unknown(reason_of, total, call, inner, len(reasons))
    reasons += [f"{_INSIDE}{reason}" for reason in reasons]
    _memory(rows, shared_flops, shared_bytes, reason_of)
    written, added = (call_costs.of_rows(name) for name in ("written", "added"))
    fills = _fill_costs(rows, call, weight, helper, written, added)
    moved = fills.charge(left_bytes, shared_bytes, rows.chosen, op_calls.around(rows.records))
    explain((shared_flops < 0) | ((moved < 0) & ~helper), reasons, reason_of)
    return Costs(
        flops=shared_flops,
        bytes=moved,
        reason=DictionaryColumn(reason_of, reasons),
        params=cost.map(attrgetter("params")),
        via=cost.map(attrgetter("via")),
        call=call,
        work=rows.work,
        helper=helper,
        autotuning=grouping.autotuning,
    )


def without_impossible(costs: Costs, rows: Int64Array) -> Costs:
    """Return costs in which those of the op calls of some rows are unknown."""
    if not len(rows):
        return costs
    unknown = np.isin(costs.call, costs.call[rows])
    reasons = costs.reason.values
    reason_of = np.where(unknown, len(reasons), costs.reason.index)
    flops, moved = (np.where(unknown, MISSING, part) for part in (costs.flops, costs.bytes))
    reason = DictionaryColumn(reason_of, [*reasons, IMPOSSIBLE])
    return replace(costs, flops=flops, bytes=moved, reason=reason)


def explain(unknown: Mask, reasons: list[str], reason_of: IntArray) -> None:
    """Set a general reason for unknown rows that have none."""
    silent = np.array([reason.removeprefix(_INSIDE) == "" for reason in reasons]).take(reason_of)
    reason_of[unknown & silent] = len(reasons)
    reasons.append(UNEXPLAINED)


def _weights(
    rows: Rows, grouping: Grouping, call_costs: CallCosts, flops: Int64Array
) -> Int64Array:
    """Weigh each kernel's part in its call's arithmetic: by duration, with exceptions.

    The two gradients of a product need the same FLOPs, whichever kernel is faster; calls may be
    divided by stage; and ops on the CPU have FLOPs of their own. `flops` are those of each row's
    call.
    """
    products = rows.family.is_in(*PRODUCTS) & rows.work.matches(attrgetter("gradient"))
    alike = products & (grouping.kernels == len(_GRADIENTS))
    weight = np.where(grouping.arithmetic, np.where(alike, 1, rows.weight), 0)
    stages = call_costs.cost.map(attrgetter("stages"))
    weight = _by_stage(weight, stages, grouping.call, grouping.kernels)
    if not rows.on_cpu.any():
        return weight
    own = parts(rows.own_flops, flops, grouping.call, grouping.arithmetic)
    return np.where(rows.on_cpu, own, weight)


def _by_stage(
    weight: Int64Array, stages: DictionaryColumn, call: IntArray, kernels: IntArray
) -> Int64Array:
    """Weigh kernels by stage where a call has as many kernels as stages, instead of by time.

    Rows without weight do none of the arithmetic.
    """
    count = stages.numpy(len, 0)
    rows = np.flatnonzero((count > 0) & (count == kernels) & (weight > 0))
    if not len(rows):
        return weight
    rows = rows[np.argsort(call[rows], kind="stable")]  # of a call, in the order of their start
    first = np.flatnonzero(np.diff(call[rows], prepend=MISSING))
    index = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
    most = max(map(len, stages.values))
    table = np.array([[*each, *(0,) * (most - len(each))] for each in stages.values], np.int64)
    stage_weight = weight.copy()
    stage_weight[rows] = table[stages.index[rows], index]
    return stage_weight


def _number(value: int | None) -> int:
    return value if value is not None and value < 1 << 63 else MISSING


def _fill_costs(
    rows: Rows,
    call: IntArray,
    weight: Int64Array,
    helper: Mask,
    written: Int64Array,
    added: Int64Array,
) -> FillCosts:
    """Find the rows that fill memory or handle a bias, and those that move fewer bytes for it.

    `written` are the bytes that a row's call writes, `added` those that are moved for its bias.
    """
    gradient = rows.work.matches(attrgetter("gradient"))
    sparse = rows.family.is_in(*SPARSE) & gradient & (written > 0)
    product = rows.family.is_in(*PRODUCTS) & (added > 0)
    filling = rows.family.is_in("fill") & (weight > 0)
    helps = (sparse & rows.role.is_in(Role.FILL)) | _bias(rows, call, product & helper)
    return FillCosts(
        call=call,
        part=np.where(product, added, written),
        weight=np.where(sparse | product, weight, 0),
        own=filling | rows.records.of_kind(schema.MEMSET),
        helps=np.where(helper & helps, rows.weight, 0),
    )


def _bias(rows: Rows, call: IntArray, helper: Mask) -> Mask:
    """Mask of the helpers that handle a product's bias: in each call, the first that can.

    cuBLAS adds the product to a copy of the bias; copies to another type are autocast's. After a
    convolution the bias is added element by element. Its gradient is a sum in both cases.
    """
    gradient = rows.work.matches(attrgetter("gradient"))
    copies = rows.role.is_in(Role.COPY) & ~rows.casts & rows.family.is_in("gemm")
    can = np.where(
        gradient, rows.role.is_in(Role.REDUCE), copies | rows.role.is_in(Role.ELEMENTWISE)
    )
    served = np.zeros(len(call), bool)
    first = np.flatnonzero(helper & can)
    served[first[distinct(call[first])[0]]] = True
    return served


def _memory(rows: Rows, flops: Int64Array, moved: Int64Array, reason_of: IntArray) -> None:
    """Cost copies and sets by their recorded bytes; graph launches hide their work."""
    size = rows.records.numpy("bytes")
    name = rows.records.dictionary("kShortName")
    times = name.numpy(lambda text: 2 if "DtoD" in text or "PtoP" in text else 1, 1)
    memory = rows.records.of_kind(schema.MEMCPY, schema.MEMSET)
    moved[memory] = np.where(size < 0, MISSING, size * times)[memory]
    flops[memory] = 0
    reason_of[memory] = _FIRST_REASONS.index(_KNOWN)
    reason_of[memory & (size < 0)] = _FIRST_REASONS.index(_NO_SIZE)
    graph = ~rows.kernel & ~memory
    flops[graph] = moved[graph] = MISSING
    reason_of[graph] = _FIRST_REASONS.index(_GRAPH)


def _charged_inside(rows: Rows, call: IntArray) -> Int64Array:
    """Find charged calls inside charged calls: (inner, outer) call numbers.

    On the GPU these are products inside products, on the CPU any call inside another. A
    memset inside an op costs what it moves, not what the op costs.
    """
    ids = op_calls.around(rows.records)
    parts = (rows.family.is_in(*PRODUCTS) & rows.kernel) | rows.on_cpu
    if ids is None or not parts.any():
        return np.zeros((0, 2), np.int64)
    return nested_products(*ids, rows.chosen, call, parts)
