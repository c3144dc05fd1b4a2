"""The cost of an op call, shared among its kernels: as much as the call cost, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.gpu.roles import Role, rank, role
from pyprof.ops.registry import BPROP
from pyprof.parse.records import distinct
from pyprof.prof.families import PRODUCTS, family
from pyprof.prof.nested import inside, without_inner
from pyprof.prof.situations import OWN, Work, choose, situations
from pyprof.prof.trials import trials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.parse.records import Records

    Ints = NDArray[np.int64]

UNKNOWN = -1

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
    work_of, found = situations(records)
    works = [choose(situation) for situation in found]
    ranks = _ranks(records, works, work_of)
    kernel = _is_kernel(records)
    call = _calls(records, works, work_of, ranks)
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
    kernels = np.minimum(count[call], 1 << 16)
    first, cost_of = distinct(work_of << 32 | kernels)
    costs = [works[work_of[row]].cost(int(kernels[row]) or None) for row in first.tolist()]
    reasons = list(dict.fromkeys(["", _GRAPH, *(cost.reason for cost in costs)]))
    place = {reason: number for number, reason in enumerate(reasons)}
    totals = [
        np.array([_number(value) for value in column], np.int64) for column in _columns(costs)
    ]
    weight = _weights(records, works, work_of, arithmetic, count[call])
    pairs = _products_inside(records, works, work_of, call)
    flops, moved = (
        _portions(without_inner(total[cost_of], call, pairs), weight, call) for total in totals
    )
    helper = kernel & ~arithmetic
    flops[helper], moved[helper] = (
        np.where(totals[0][cost_of[helper]] == UNKNOWN, UNKNOWN, 0),
        UNKNOWN,
    )
    reason_of = np.array([place[cost.reason] for cost in costs], np.int64)[cost_of]
    _memory(records, kernel, flops, moved, reason_of)
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


def _tried(
    records: Records, works: list[Work], work_of: Ints, call: Ints, kernel: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which kernels a convolution's call only tried, to choose among them."""
    conv = np.array([family(work) == "conv" for work in works], bool)[work_of] & kernel
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
    products = np.array(
        [work.direction == BPROP and family(work) in PRODUCTS for work in works], bool
    )
    alike = products[work_of] & (kernels == len(_GRADIENTS))
    weight = np.where(alike, 1, np.maximum(records.numpy("kDuration"), 1))
    return np.where(arithmetic, weight, 0)


_GRADIENTS = ("dgrad", "wgrad")

_GRAPH = "the kernels of a CUDA graph launch are not in the capture"


def _columns(costs: list[object]) -> list[list[int | None]]:
    return [[getattr(cost, name) for cost in costs] for name in ("flops", "bytes")]


def _number(value: int | None) -> int:
    return value if value is not None and value < 1 << 63 else UNKNOWN


def _portions(total: Ints, weight: Ints, call: Ints) -> Ints:
    """Share each call's total by weight, in whole numbers that add up to it."""
    order = np.argsort(call, kind="stable")
    grouped, running = call[order], np.cumsum(weight[order])
    first = np.searchsorted(grouped, grouped)
    last = np.searchsorted(grouped, grouped, side="right") - 1
    base = (running - weight[order])[first]
    whole = np.maximum(running[last] - base, 1)
    amount = np.maximum(total[order], 0)
    upto = _part(amount, running - base, whole)
    before = _part(amount, running - weight[order] - base, whole)
    shared = np.full(len(call), UNKNOWN)
    shared[order] = np.where(total[order] == UNKNOWN, UNKNOWN, upto - before)
    return shared


def _part(amount: Ints, part: Ints, whole: Ints) -> Ints:
    """Give amount * part / whole, rounded down, exact where part equals whole."""
    quotient, rest = np.divmod(amount, whole)
    return quotient * part + np.floor(rest * (part / whole)).astype(np.int64)


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


# --- which rows are one call --------------------------------------------------------------------


def _calls(records: Records, works: list[Work], work_of: Ints, ranks: Ints) -> Ints:
    """Number the op calls; rows of one call share its number."""
    position = np.array([work.position for work in works], np.int64)[work_of]
    ids = _ids(records)
    if ids is None:
        return _runs(work_of, ranks)
    chosen = _chosen(*ids, position)
    call = np.where(chosen < 0, -1 - np.arange(len(chosen)), chosen)
    used, call = distinct(call)
    # Rows of one call in different surroundings work for the same: it is costed once.
    known: dict[object, int] = {}
    same = [known.setdefault((w.call, w.direction, w.dtype, w.output), len(known)) for w in works]
    return distinct(np.array(same, np.int64)[work_of] * len(used) + call)[1]


def _chosen(offsets: Ints, members: Ints, position: Ints) -> Ints:
    """Give the id of the call that each row works for; -1 for a row that is a call of its own."""
    own = (position == OWN) | (position >= np.diff(offsets))
    chosen = np.full(len(position), -1)
    chosen[~own] = members[offsets[:-1][~own] + position[~own]]
    return chosen


def _products_inside(records: Records, works: list[Work], work_of: Ints, call: Ints) -> Ints:
    """Find the products that are part of other products: (inner, outer) call numbers."""
    ids = _ids(records)
    product = np.array([family(work) in PRODUCTS for work in works], bool)[work_of]
    if ids is None or not product.any():
        return np.zeros((0, 2), np.int64)
    position = np.array([work.position for work in works], np.int64)[work_of]
    return inside(*ids, _chosen(*ids, position), call, product)


def _ids(records: Records) -> tuple[Ints, Ints] | None:
    column = records.arrow("callIds")
    if column.null_count == len(column):
        return None
    return column.offsets.to_numpy().astype(np.int64), column.values.to_numpy()


def _runs(work_of: Ints, ranks: Ints) -> Ints:
    """Guess the op calls of the original's files, which do not tell them.

    Each kernel that may do arithmetic is a call of its own, as it was there; helpers belong to
    the call before them, if that is of the same op.
    """
    previous = np.concatenate([[UNKNOWN], work_of[:-1]])
    new = (ranks < _HELPS) | (work_of != previous)
    return np.cumsum(new) - 1
