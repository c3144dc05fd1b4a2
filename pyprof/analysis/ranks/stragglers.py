"""Whom the other ranks wait for, by rank and step, and how evenly layers load them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.collective_kinds import group_by_key
from pyprof.arrays import MISSING
from pyprof.records.merging import texts_of
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.analysis.ranks.collective_kinds import CollectiveKey
    from pyprof.analysis.ranks.match import Group
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.analysis.ranks.waiting import Waits
    from pyprof.arrays import Floats, IntArray


def of_others(values: Floats) -> Floats:
    """For each of two or more values, the median of all others."""
    order = np.argsort(values, kind="stable")
    index = np.empty(len(values), np.int64)
    index[order] = np.arange(len(values))
    others = len(values) - 1
    below, above = (
        values[order][middle + (middle >= index)]  # without itself
        for middle in ((others - 1) // 2, others // 2)
    )
    return np.asarray((below + above) / 2)


@dataclass(frozen=True, slots=True)
class StragglerCost:
    """A rank as the others see it."""

    rank: int
    """The rank."""
    last: int
    """Collectives to which it came last."""
    of: int
    """Collectives in which it took part."""
    cost_ns: int
    """What all others together waited in those."""
    waited_ns: int
    """What it waited itself."""
    own_ns: float | None
    """Median step without exposed communication; null if no steps were found."""
    excess_ns: float | None
    """How much more of that than the median of the others; null if no steps were found, or
    there are no others."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a rank cost the others in one step."""

    step: int
    """The step, from 0."""
    rank: int
    """The rank."""
    last: int
    """Collectives to which it came last."""
    cost_ns: int
    """What all others together waited in those."""


@dataclass(frozen=True, slots=True)
class Together:
    """Ranks of a group that came last within the clocks' residual of each other."""

    ranks: tuple[int, ...]
    cost_ns: int
    """How long all others together waited for them."""


@dataclass(frozen=True, slots=True)
class Late:
    """The collectives of one kind, in one group, to which a rank came last."""

    rank: int
    group: Group
    key: CollectiveKey
    last: int
    cost_ns: int


def stragglers(
    waits: Sequence[Waits], own: Mapping[int, float], ranks: Sequence[int]
) -> list[StragglerCost]:
    """Total what each rank cost the others, and waited itself; the most expensive first.

    `own`: each rank's median step without exposed communication, ns, if it has steps.
    """
    excess = dict(zip(own, _over_others(np.array([*own.values()])), strict=True))
    last, of, cost, waited = (dict.fromkeys(ranks, 0) for _ in range(4))
    for one in waits:
        for rank, there, ns in zip(
            one.ranks.tolist(), one.there.sum(axis=1), one.wait_ns.sum(axis=1), strict=True
        ):
            of[rank] += int(there)
            waited[rank] += int(ns)
        for rank, count, ns in _blamed(one.last, one.others_ns):
            last[rank] += count
            cost[rank] += ns
    costs = [
        StragglerCost(rank, last[rank], of[rank], cost[rank], waited[rank], own.get(rank),
                  excess.get(rank))
        for rank in ranks
    ]  # fmt: skip
    return sorted(costs, key=lambda one: (-one.cost_ns, -(one.excess_ns or 0.0), one.rank))


def _over_others(own: Floats) -> list[float | None]:
    if len(own) < 2:  # noqa: PLR2004 - nobody to compare with
        return [None] * len(own)
    over: list[float | None] = (own - of_others(own)).tolist()
    return over


def _blamed(last: IntArray, costs: IntArray) -> Iterator[tuple[int, int, int]]:
    """The ranks that came last, how often, and how long the others waited."""
    alone = last != MISSING
    ranks, index = np.unique(last[alone], return_inverse=True)
    cost_ns = totals(index, costs[alone], len(ranks))
    return zip(ranks.tolist(), np.bincount(index).tolist(), cost_ns.tolist(), strict=True)


def by_collective(columns: Collectives, waits: Sequence[Waits]) -> list[Late]:
    """Total what each rank cost at each kind of collective, most expensive first."""
    late = [
        Late(rank, one.group, key, count, cost)
        for one in waits
        for costs in [one.others_ns]
        for key, chosen in group_by_key(columns, one)
        for rank, count, cost in _blamed(one.last[chosen], costs[chosen])
    ]
    return sorted(late, key=lambda one: (-one.cost_ns, one.rank))


def by_step(waits: Sequence[Waits]) -> list[StepCost]:
    """Total what each rank cost in each step; collectives outside of steps are left out."""
    if not waits:
        return []
    step, last, cost = (
        np.concatenate([getattr(one, name) for one in waits])
        for name in ("step", "last", "others_ns")
    )
    blamed = (last != MISSING) & (step >= 0)
    step, last = step[blamed], last[blamed]
    first, group = combinations(step, last)
    cost_ns = totals(group, cost[blamed], len(first))
    rows = (step[first], last[first], np.bincount(group), cost_ns)
    return [StepCost(*row) for row in sorted(zip(*(part.tolist() for part in rows), strict=True))]


def together(waits: Sequence[Waits]) -> tuple[int, list[Together]]:
    """Total the waiting for several ranks that were last together: in all, and the largest."""
    cost_by_ranks: dict[tuple[int, bytes], int] = {}
    for number, one in enumerate(waits):
        costs = one.others_ns
        for index in np.flatnonzero((one.last == MISSING) & (costs > 0)).tolist():
            key = (number, one.latest[:, index].tobytes())
            cost_by_ranks[key] = cost_by_ranks.get(key, 0) + int(costs[index])
    costliest = sorted(cost_by_ranks, key=lambda key: (-cost_by_ranks[key], key[0], key[1]))[:_KEPT]
    several = [
        Together(
            tuple(waits[number].ranks[np.frombuffer(mask, bool)].tolist()),
            cost_by_ranks[number, mask],
        )
        for number, mask in costliest
    ]
    return sum(cost_by_ranks.values()), sorted(several, key=lambda one: (-one.cost_ns, one.ranks))


_KEPT = 100
"""Maximum number of sets that are returned; there may be one per collective, each of many ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSpread:
    """A layer's own GPU time across ranks, without communication."""

    layer: str
    """The layer."""
    mean_ns: float
    """Mean time over the ranks that have the layer."""
    most_ns: int
    """Time on the slowest rank."""
    rank: int
    """The slowest rank."""
    ranks: int
    """Number of ranks that have the layer."""
    imbalance: float | None
    """Largest time divided by the mean; null if no rank spent time."""


def layer_spreads(layers: pa.Table) -> list[LayerSpread]:
    """Compare the ranks layer by layer; the layer that holds the others up most first.

    The mean is over the ranks that have the layer: stages of a pipeline have their own.
    """
    slowest_first = texts_of(layers).sort_by([("gpu_ns", "descending"), ("rank", "ascending")])
    by_layer = slowest_first.group_by("layer", use_threads=False).aggregate(
        [("gpu_ns", "mean"), ("gpu_ns", "first"), ("rank", "first"), ("rank", "count")]
    )
    spreads = [
        LayerSpread(
            layer=row["layer"],
            mean_ns=row["gpu_ns_mean"],
            most_ns=row["gpu_ns_first"],
            rank=row["rank_first"],
            ranks=row["rank_count"],
            imbalance=row["gpu_ns_first"] / row["gpu_ns_mean"] if row["gpu_ns_mean"] else None,
        )
        for row in by_layer.to_pylist()
    ]
    return sorted(spreads, key=lambda one: (one.mean_ns - one.most_ns, one.layer))
