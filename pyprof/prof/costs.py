"""The cost of an op call, shared among its kernels: as much as the call cost, once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.gpu.kernel_roles import Role, rank, role
from pyprof.parse.records import distinct
from pyprof.prof import op_calls
from pyprof.prof.apportion import UNKNOWN, parts, portions
from pyprof.prof.autotuning import trials
from pyprof.prof.families import MOVES, PRODUCTS, family
from pyprof.prof.kernel_context import situations
from pyprof.prof.name_hints import by_name
from pyprof.prof.op_calls import SPARSE, Fills, inside, tell_inside, without_inner
from pyprof.prof.op_choice import choose, own_flops
from pyprof.prof.result_shapes import with_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyprof.arrays import Ints, Mask
    from pyprof.ops import Cost
    from pyprof.parse.records import Coded, Records
    from pyprof.prof.chosen_call import Work


_HELPS = 1 << 20
"""The rank of a kernel that only helps."""

_MOST_KERNELS = 1 << 16
"""Calls with more kernels than that are costed as though they had so many."""

_GRADIENTS = ("dgrad", "wgrad")

_KNOWN, _GRAPH = "", "the kernels of a CUDA graph launch are not in the capture"
_NO_SIZE = "the number of bytes copied or set is not recorded"
_FIRST_REASONS = (_KNOWN, _GRAPH, _NO_SIZE)
_INSIDE = "inside it: "
UNSAID = "unknown reason: its formula gives none"


@dataclass(frozen=True, slots=True)
class Costs:
    """What every row costs. UNKNOWN where it cannot be said, with the reason."""

    flops: Ints
    bytes: Ints
    reason: list[str]
    """Distinct reasons; "" for none."""
    reason_of: Ints
    params: list[Mapping[str, object]]
    params_of: Ints
    call: Ints
    """Number of the op call that each row works for."""
    work: list[Work]
    work_of: Ints
    helper: NDArray[np.bool_]
    """Rows that only help their op call's arithmetic, and those that were only tried."""
    tried: NDArray[np.bool_]
    """Rows that cuDNN's benchmark ran to choose another."""


@dataclass(frozen=True)
class _Rows:
    """The rows of a capture, what each works for, and what its name and kind tell."""

    records: Records
    work: list[Work]
    work_of: Ints
    family: list[str]
    """Of each work."""
    name: Coded
    role: list[Role]
    """Of each name."""
    kind: NDArray[np.str_]
    own_flops: Ints
    """Of the innermost op of each row on the CPU, whatever it works for."""

    @cached_property
    def on_cpu(self) -> Mask:
        """Rows that are ops on the CPU."""
        return np.asarray(self.kind == schema.KINDS[schema.CPU])

    @cached_property
    def kernel(self) -> Mask:
        """Rows that run an op's code: on a GPU, or on the CPU of a capture without one."""
        return np.isin(self.kind, (schema.KINDS[schema.KERNEL], schema.KINDS[schema.CPU]))

    @cached_property
    def weight(self) -> Ints:
        """Time on the GPU, ns; at least 1, so that each row has a part."""
        return np.maximum(self.records.numpy("kDuration"), 1)

    def working(self, test: Callable[[Work, str], bool]) -> Mask:
        """Tell which rows work for an op call, of a family, that passes a test."""
        passed = [test(*pair) for pair in zip(self.work, self.family, strict=True)]
        return np.array(passed, bool)[self.work_of]

    def named(self, *roles: Role) -> Mask:
        """Tell which rows have a kernel of one of these roles."""
        return np.array([role in roles for role in self.role], bool)[self.name.index]


def share_costs(records: Records) -> Costs:
    """Find each row's op call, cost the distinct ones, and share them among their kernels."""
    number, found = situations(records)
    work_of, works = with_outputs(records, number, found, [choose(each) for each in found])
    name = records.coded("kLongName")
    roles = [role(text) for text in name.values]
    families = [family(work) for work in works]
    alone = np.array([_number(own_flops(each)) if each.on_cpu else UNKNOWN for each in found])
    own = alone[number] if len(found) else number
    rows = _Rows(records, works, work_of, families, name, roles, _kinds(records), own)
    ranks = np.where(rows.on_cpu, rows.own_flops == 0, _ranks(rows))
    call = op_calls.number(records, works, work_of, ranks < _HELPS)
    tried = _tried(rows, call)
    ranks[tried] = _HELPS
    best = np.full(int(call.max(initial=-1)) + 1, _HELPS)
    np.minimum.at(best, call[rows.kernel], ranks[rows.kernel])
    return _share(rows, call, rows.kernel & (ranks == best[call]), tried)


def _share(rows: _Rows, call: Ints, arithmetic: Mask, tried: Mask) -> Costs:
    """Share the cost of each call among the rows that do its arithmetic."""
    kernels = np.bincount(call[arithmetic], minlength=int(call.max(initial=-1)) + 1)[call]
    costs, cost_of = _costs(rows, call, arithmetic, kernels)
    reasons = list(dict.fromkeys([*_FIRST_REASONS, *(cost.reason for cost in costs)]))
    place = {reason: number for number, reason in enumerate(reasons)}
    flops, moved, written, added = (
        np.array([_number(getattr(cost, name)) for cost in costs], np.int64)[cost_of]
        for name in ("flops", "bytes", "written", "added")
    )
    weight = _weights(rows, arithmetic, kernels)
    if rows.on_cpu.any():
        weight = np.where(rows.on_cpu, parts(rows.own_flops, flops, call, arithmetic), weight)
    pairs = _charged_inside(rows, call)
    left_flops, left_bytes = (without_inner(total, call, pairs) for total in (flops, moved))
    shared_flops, shared_bytes = (portions(left, weight, call) for left in (left_flops, left_bytes))
    helper = rows.kernel & ~arithmetic
    shared_flops[helper] = np.where(flops[helper] == UNKNOWN, UNKNOWN, 0)
    shared_bytes[helper] = UNKNOWN
    reason_of = np.array([place[cost.reason] for cost in costs], np.int64)[cost_of]
    for total in (flops, moved):
        tell_inside(reason_of, total, call, pairs, len(reasons))
    reasons += [f"{_INSIDE}{reason}" for reason in reasons]
    _memory(rows, shared_flops, shared_bytes, reason_of)
    chosen = op_calls.chosen(rows.records, rows.work, rows.work_of)
    fills = _fills(rows, call, weight, helper, (written, added))
    moved = fills.charge(left_bytes, shared_bytes, chosen, op_calls.around(rows.records))
    explain((shared_flops < 0) | ((moved < 0) & ~helper), reasons, reason_of)
    return Costs(
        flops=shared_flops,
        bytes=moved,
        reason=reasons,
        reason_of=reason_of,
        params=[cost.params for cost in costs],
        params_of=cost_of,
        call=call,
        work=rows.work,
        work_of=rows.work_of,
        helper=helper,
        tried=tried,
    )


def explain(unknown: Mask, reasons: list[str], reason_of: Ints) -> None:
    """Let no row be unknown without a word."""
    silent = np.array([reason.removeprefix(_INSIDE) == "" for reason in reasons])[reason_of]
    reason_of[unknown & silent] = len(reasons)
    reasons.append(UNSAID)


def _costs(rows: _Rows, call: Ints, arithmetic: Mask, kernels: Ints) -> tuple[list[Cost], Ints]:
    """Cost each distinct op call, by how many kernels and what their names tell; and each row's."""
    untyped = rows.working(lambda work, _: work.untyped) & arithmetic
    moving = untyped & rows.working(lambda _, family: family in MOVES)
    number, told = by_name(rows.name, call, untyped, moving, rows.kernel)
    # One op on the CPU may do what takes two kernels on a GPU.
    kernels = np.where(rows.on_cpu, 0, np.minimum(kernels, _MOST_KERNELS))
    first, cost_of = distinct((rows.work_of * len(told) + number) * (_MOST_KERNELS + 1) + kernels)
    costs = [
        rows.work[rows.work_of[row]].cost(int(kernels[row]) or None, told[number[row]])
        for row in first.tolist()
    ]
    return costs, cost_of


def _tried(rows: _Rows, call: Ints) -> Mask:
    """Tell which kernels a convolution's call only tried, to choose among them.

    Where shapes are not recorded, no call is known to be like another.
    """
    conv = rows.working(lambda work, family: family == "conv" and work.shaped) & rows.kernel
    if not conv.any():
        return conv
    return trials(rows.records, rows.work_of, call, conv, rows.named(Role.CONV, Role.GEMM))


def _weights(rows: _Rows, arithmetic: Mask, kernels: Ints) -> Ints:
    """Weigh each kernel's part in its call's arithmetic: by duration.

    But the two gradients of a product need the same FLOPs, whichever kernel is the faster.
    """
    products = rows.working(lambda work, family: work.gradient and family in PRODUCTS)
    alike = products & (kernels == len(_GRADIENTS))
    return np.where(arithmetic, np.where(alike, 1, rows.weight), 0)


def _number(value: int | None) -> int:
    return value if value is not None and value < 1 << 63 else UNKNOWN


def _fills(rows: _Rows, call: Ints, weight: Ints, helper: Mask, parts: tuple[Ints, Ints]) -> Fills:
    """Find the rows that fill memory or add a bias, and those whose bytes are fewer for it.

    `parts` are the bytes of what a row's call writes, and of what is moved for its bias.
    """
    written, added = parts
    sparse = rows.working(lambda work, family: family in SPARSE and work.gradient) & (written > 0)
    product = rows.working(lambda _, family: family in PRODUCTS) & (added > 0)
    filling = rows.working(lambda _, family: family == "fill") & (weight > 0)
    helps = (sparse & rows.named(Role.FILL)) | _bias(rows, call, product & helper)
    return Fills(
        call=call,
        part=np.where(product, added, written),
        weight=np.where(sparse | product, weight, 0),
        own=filling | (rows.kind == schema.KINDS[schema.MEMSET]),
        helps=np.where(helper & helps, rows.weight, 0),
    )


def _bias(rows: _Rows, call: Ints, helper: Mask) -> Mask:
    """Tell which helpers of products serve the bias: the first of a call that can.

    cuBLAS adds to what is there: a copy of the bias. Behind a convolution it is added, element by
    element; the gradient of either is a sum.
    """
    gradient = rows.working(lambda work, _: work.gradient)
    copies = rows.named(Role.COPY) & rows.working(lambda _, family: family == "gemm")
    can = np.where(gradient, rows.named(Role.REDUCE), copies | rows.named(Role.ELEMENTWISE))
    served = np.zeros(len(call), bool)
    first = np.flatnonzero(helper & can)
    served[first[np.unique(call[first], return_index=True)[1]]] = True
    return served


def _memory(rows: _Rows, flops: Ints, moved: Ints, reason_of: Ints) -> None:
    """Cost copies and sets by what the capture says they moved; graph launches hide their work."""
    size = rows.records.numpy("bytes")
    name = rows.records.coded("kShortName")
    twice = np.array([("DtoD" in text or "PtoP" in text) for text in name.values] + [False])
    memory = np.isin(rows.kind, ("memcpy", "memset"))
    moved[memory] = np.where(size < 0, UNKNOWN, size * np.where(twice[name.index], 2, 1))[memory]
    flops[memory] = 0
    reason_of[memory] = _FIRST_REASONS.index(_KNOWN)
    reason_of[memory & (size < 0)] = _FIRST_REASONS.index(_NO_SIZE)
    graph = ~rows.kernel & ~memory
    flops[graph] = moved[graph] = UNKNOWN
    reason_of[graph] = _FIRST_REASONS.index(_GRAPH)


def _kinds(records: Records) -> NDArray[np.str_]:
    kind = records.coded("kind")
    return np.array([*kind.values, "kernel"])[kind.index]  # the original's files hold kernels only


def _ranks(rows: _Rows) -> Ints:
    """Rank each row's kernel among those that may do its op's arithmetic; 0 is the likeliest."""
    first, index = distinct(rows.work_of << 32 | rows.name.index)
    found = [
        rank(rows.role[rows.name.index[row]], rows.family[rows.work_of[row]])
        for row in first.tolist()
    ]
    return np.array([_HELPS if place is None else place for place in found], np.int64)[index]


def _charged_inside(rows: _Rows, call: Ints) -> Ints:
    """Find what is charged inside of what is charged too: (inner, outer) call numbers.

    Products inside of products, and on the CPU whatever is inside of a call. A memset inside an op
    costs what it moves, not what the op costs.
    """
    ids = op_calls.around(rows.records)
    parts = (rows.working(lambda _, family: family in PRODUCTS) & rows.kernel) | rows.on_cpu
    if ids is None or not parts.any():
        return np.zeros((0, 2), np.int64)
    return inside(*ids, op_calls.chosen(rows.records, rows.work, rows.work_of), call, parts)
