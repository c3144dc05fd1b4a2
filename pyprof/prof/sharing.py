"""The cost of an op call, shared among its kernels: as much as the call cost, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.gpu.roles import Role, rank, role
from pyprof.parse.records import distinct
from pyprof.prof import op_calls
from pyprof.prof.families import PRODUCTS, family
from pyprof.prof.fills import SPARSE, Fills
from pyprof.prof.nested import inside, tell_inside, without_inner
from pyprof.prof.outputs import with_outputs
from pyprof.prof.portions import UNKNOWN, portions
from pyprof.prof.situations import Work, choose, situations
from pyprof.prof.told import by_name
from pyprof.prof.trials import trials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.ops import Cost
    from pyprof.parse.records import Records

    Ints = NDArray[np.int64]

_HELPS = 1 << 20
"""The rank of a kernel that only helps."""


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


def share_costs(records: Records) -> Costs:
    """Find each row's op call, cost the distinct ones, and share them among their kernels."""
    number, found = situations(records)
    chosen = [choose(situation) for situation in found]
    work_of, works = with_outputs(records, number, found, chosen)
    ranks = _ranks(records, works, work_of)
    kernel = _is_kernel(records)
    call = op_calls.number(records, works, work_of, ranks < _HELPS)
    tried = _tried(records, works, work_of, call, kernel)
    ranks[tried] = _HELPS
    best = np.full(int(call.max(initial=-1)) + 1, _HELPS)
    np.minimum.at(best, call[kernel], ranks[kernel])
    arithmetic = kernel & (ranks == best[call])
    count = np.bincount(call[arithmetic], minlength=len(best))
    return _share(records, works, work_of, call, arithmetic, count, kernel, tried)


def _share(
    records: Records,
    works: list[Work],
    work_of: Ints,
    call: Ints,
    arithmetic: NDArray[np.bool_],
    count: Ints,
    kernel: NDArray[np.bool_],
    tried: NDArray[np.bool_],
) -> Costs:
    costs, cost_of = _costs(records, works, work_of, call, arithmetic, count, kernel)
    reasons = list(dict.fromkeys(["", _GRAPH, *(cost.reason for cost in costs)]))
    place = {reason: number for number, reason in enumerate(reasons)}
    totals = [
        np.array([_number(value) for value in column], np.int64)[cost_of]
        for column in _columns(costs)
    ]
    weight = _weights(records, works, work_of, arithmetic, count[call])
    pairs = _products_inside(records, works, work_of, call, kernel)
    left = [without_inner(total, call, pairs) for total in totals]
    flops, moved = (portions(total, weight, call) for total in left)
    helper = kernel & ~arithmetic
    flops[helper], moved[helper] = np.where(totals[0][helper] == UNKNOWN, UNKNOWN, 0), UNKNOWN
    reason_of = np.array([place[cost.reason] for cost in costs], np.int64)[cost_of]
    for total in totals:
        tell_inside(reason_of, total, call, pairs, len(reasons))
    reasons += [f"inside it: {reason}" for reason in reasons]
    _memory(records, kernel, flops, moved, reason_of)
    written = np.array([cost.written for cost in costs], np.int64)[cost_of]
    fills = _fills(records, works, work_of, call, weight, helper, written)
    chosen = op_calls.chosen(records, works, work_of)
    moved = fills.charge(left[1], moved, chosen, op_calls.around(records))
    return Costs(
        flops=flops,
        bytes=moved,
        reason=reasons,
        reason_of=reason_of,
        params=[cost.params for cost in costs],
        params_of=cost_of,
        call=call,
        work=works,
        work_of=work_of,
        helper=helper,
        tried=tried,
    )


def _costs(
    records: Records,
    works: list[Work],
    work_of: Ints,
    call: Ints,
    arithmetic: NDArray[np.bool_],
    count: Ints,
    kernel: NDArray[np.bool_],
) -> tuple[list[Cost], Ints]:
    """Cost each distinct op call, by how many kernels and what their names tell; and each row's."""
    untyped = np.array([work.untyped for work in works], bool)[work_of] & arithmetic
    number, told = by_name(records.coded("kLongName"), call, untyped, kernel)
    key = work_of << 32 | number << 20 | np.minimum(count[call], 1 << 16)
    first, cost_of = distinct(key)
    costs = [
        works[pair >> 32].cost(pair & 0xFFFFF or None, told[pair >> 20 & 0xFFF])
        for pair in key[first].tolist()
    ]
    return costs, cost_of


def _tried(
    records: Records, works: list[Work], work_of: Ints, call: Ints, kernel: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which kernels a convolution's call only tried, to choose among them.

    Where shapes are not recorded, no call is known to be like another.
    """
    conv = np.array([family(work) == "conv" and work.shaped for work in works], bool)[work_of]
    conv &= kernel
    if not conv.any():
        return conv
    name = records.coded("kLongName")
    products = np.array([role(text) in (Role.CONV, Role.GEMM) for text in name.values], bool)
    return trials(records, work_of, call, conv, products[name.index])


def _weights(
    records: Records, works: list[Work], work_of: Ints, arithmetic: NDArray[np.bool_], kernels: Ints
) -> Ints:
    """Weigh each kernel's part in its call's arithmetic: by duration.

    But the two gradients of a product need the same FLOPs, whichever kernel is the faster.
    """
    products = np.array([work.gradient and family(work) in PRODUCTS for work in works], bool)
    alike = products[work_of] & (kernels == len(_GRADIENTS))
    weight = np.where(alike, 1, np.maximum(records.numpy("kDuration"), 1))
    return np.where(arithmetic, weight, 0)


_GRADIENTS = ("dgrad", "wgrad")

_GRAPH = "the kernels of a CUDA graph launch are not in the capture"


def _columns(costs: list[Cost]) -> list[list[int | None]]:
    return [[getattr(cost, name) for cost in costs] for name in ("flops", "bytes")]


def _number(value: int | None) -> int:
    return value if value is not None and value < 1 << 63 else UNKNOWN


def _fills(
    records: Records,
    works: list[Work],
    work_of: Ints,
    call: Ints,
    weight: Ints,
    helper: NDArray[np.bool_],
    written: Ints,
) -> Fills:
    """Find the rows that fill memory, and those whose result may be filled before."""
    families = [family(work) for work in works]
    sparse = np.array(
        [of in SPARSE and work.gradient for of, work in zip(families, works, strict=True)], bool
    )[work_of] & (written > 0)
    name = records.coded("kLongName")
    zeroes = np.array([role(text) is Role.FILL for text in name.values], bool)[name.index]
    filling = np.array([of == "fill" for of in families], bool)[work_of] & (weight > 0)
    return Fills(
        call=call,
        written=written,
        weight=np.where(sparse, weight, 0),
        own=filling | (_kinds(records) == schema.KINDS[schema.MEMSET]),
        helps=np.where(sparse & helper & zeroes, np.maximum(records.numpy("kDuration"), 1), 0),
    )


def _memory(
    records: Records, kernel: NDArray[np.bool_], flops: Ints, moved: Ints, reason_of: Ints
) -> None:
    """Cost copies and sets by what the capture says they moved; graph launches hide their work."""
    kind = _kinds(records)
    size = records.numpy("bytes")
    name = records.coded("kShortName")
    twice = np.array([("DtoD" in text or "PtoP" in text) for text in name.values] + [False])
    memory = np.isin(kind, ("memcpy", "memset"))
    moved[memory] = np.where(size < 0, UNKNOWN, size * np.where(twice[name.index], 2, 1))[memory]
    flops[memory] = 0
    reason_of[memory] = 0
    graph = ~kernel & ~memory
    flops[graph] = moved[graph] = UNKNOWN
    reason_of[graph] = 1


def _kinds(records: Records) -> NDArray[np.str_]:
    kind = records.coded("kind")
    return np.array([*kind.values, "kernel"])[kind.index]  # the original's files hold kernels only


def _is_kernel(records: Records) -> NDArray[np.bool_]:
    return np.isin(_kinds(records), (schema.KINDS[schema.KERNEL], schema.KINDS[schema.CPU]))


def _ranks(records: Records, works: list[Work], work_of: Ints) -> Ints:
    """Rank each row's kernel among those that may do its op's arithmetic; 0 is the likeliest."""
    name = records.coded("kLongName")
    families = [family(work) for work in works]
    first, index = distinct(work_of << 32 | name.index)
    roles = [role(text) for text in name.values]
    found = [_rank(roles[name.index[row]], families[work_of[row]]) for row in first.tolist()]
    return np.array(found, np.int64)[index] if found else np.zeros(0, np.int64)


def _rank(kind: Role, of: str) -> int:
    place = rank(kind, of)
    return _HELPS if place is None else place


def _products_inside(
    records: Records, works: list[Work], work_of: Ints, call: Ints, kernel: NDArray[np.bool_]
) -> Ints:
    """Find the products that are part of other products: (inner, outer) call numbers.

    Only kernels count: a memset inside an op costs what it moves, not what the op costs.
    """
    ids = op_calls.around(records)
    product = np.array([family(work) in PRODUCTS for work in works], bool)[work_of] & kernel
    if ids is None or not product.any():
        return np.zeros((0, 2), np.int64)
    return inside(*ids, op_calls.chosen(records, works, work_of), call, product)
