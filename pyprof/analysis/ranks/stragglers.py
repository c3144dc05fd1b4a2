"""Whom the other ranks wait for, by rank and step, and how evenly layers load them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.collective_kinds import group_by_key
from pyprof.answers.ranks_answer import (
    UNEVEN,
    LateCost,
    LayerSpread,
    StepCost,
    StragglerCost,
    TogetherCost,
)
from pyprof.answers.summary_answer import NO_LAYER
from pyprof.arrays import MISSING
from pyprof.records.merging import texts_of
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.analysis.ranks.waiting import Waits
    from pyprof.arrays import Floats, IntArray


def of_others(values: Floats) -> Floats:
    """For each of two or more values, the median of all others."""
    return np.array([np.median(np.delete(values, index)) for index in range(len(values))])


def stragglers(
    waits: Sequence[Waits], own: Mapping[int, float], ranks: Sequence[int]
) -> list[StragglerCost]:
    """Total what each rank cost the others, and waited itself; the most expensive first.

    `own`: each rank's median step without exposed communication, ns, if it has steps.
    """
    own_ns = np.array([*own.values()])
    excess = (
        dict(zip(own, (own_ns - of_others(own_ns)).tolist(), strict=True)) if len(own) > 1 else {}
    )
    last, of, cost, waited = (dict.fromkeys(ranks, 0) for _ in range(4))
    for one in waits:
        for rank, there, ns in zip(
            one.ranks.tolist(), one.there.sum(axis=1), one.wait_ns.sum(axis=1), strict=True
        ):
            of[rank] += int(there)
            waited[rank] += int(ns)
        for rank, count, ns in _find_blamed(one.last, one.others_ns):
            last[rank] += count
            cost[rank] += ns
    costs = [
        StragglerCost(rank, last[rank], of[rank], cost[rank], waited[rank], own.get(rank),
                  excess.get(rank))
        for rank in ranks
    ]  # fmt: skip
    return sorted(costs, key=lambda one: (-one.cost_ns, -(one.excess_ns or 0.0), one.rank))


_MIN_SHARE = 0.005
"""The own time of the slowest exceeds that of others by more than this share of a step."""


def slowest(
    costs: Sequence[StragglerCost],
    low_ns: Mapping[int, float | None],
    step_ns: float | None,
    unclear: Collection[int],
) -> list[int]:
    """Choose the ranks whose own work takes longest or, without known steps, who cost most.

    A rank may also be late because it waited for one of these elsewhere, so its own time decides.
    It must exceed the others' median in three of four steps, or who is slowest is chance: `low_ns`
    is the lower quartile of each rank. A rank counts if its excess, or cost, is at least half of
    the first one's. `unclear`: the ranks that may only have waited for one without a capture.
    """
    if step_ns is None:
        clear = [one for one in costs if one.cost_ns and one.rank not in unclear]
        costly = [one.rank for one in clear if 2 * one.cost_ns >= clear[0].cost_ns]
        return costly if 2 * len(costly) <= len(costs) else []  # most: each holds up the others
    steady = [
        one for one in costs
        if (one.own_ns or 0) - (one.excess_ns or 0) < (low_ns[one.rank] or 0)
    ]  # fmt: skip
    most = max((one.excess_ns or 0 for one in steady), default=0)
    if most <= _MIN_SHARE * step_ns:
        return []
    slow = [one for one in steady if (one.excess_ns or 0) >= most / 2]
    return [one.rank for one in sorted(slow, key=lambda one: (-(one.excess_ns or 0), one.rank))]


def _find_blamed(last: IntArray, costs: IntArray) -> Iterator[tuple[int, int, int]]:
    """The ranks that came last, how often, and how long the others waited."""
    alone = last != MISSING
    ranks, index = np.unique(last[alone], return_inverse=True)
    cost_ns = totals(index, costs[alone], len(ranks))
    return zip(ranks.tolist(), np.bincount(index).tolist(), cost_ns.tolist(), strict=True)


def by_collective(columns: Collectives, waits: Sequence[Waits]) -> list[LateCost]:
    """Total what each rank cost at each kind of collective, most expensive first."""
    late = [
        LateCost(rank=rank, group=one.group.name, members=members, **asdict(key), last=last,
                 cost_ns=cost)
        for one in waits
        for costs, members in [(one.others_ns, one.group.members)]
        for key, chosen in group_by_key(columns, one)
        for rank, last, cost in _find_blamed(one.last[chosen], costs[chosen])
    ]  # fmt: skip
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


def together(waits: Sequence[Waits]) -> tuple[int, list[TogetherCost]]:
    """Total the waiting for several ranks that were last together: in all, and the largest."""
    cost_by_ranks: dict[tuple[int, bytes], int] = {}
    for number, one in enumerate(waits):
        costs = one.others_ns
        for index in np.flatnonzero((one.last == MISSING) & (costs > 0)).tolist():
            key = (number, one.latest[:, index].tobytes())
            cost_by_ranks[key] = cost_by_ranks.get(key, 0) + int(costs[index])
    costliest = sorted(cost_by_ranks, key=lambda key: (-cost_by_ranks[key], key[0], key[1]))[:_KEPT]
    several = sorted(
        (-cost_by_ranks[number, mask], waits[number].ranks[np.frombuffer(mask, bool)].tolist())
        for number, mask in costliest
    )
    return sum(cost_by_ranks.values()), [
        TogetherCost(" ".join(map(str, ranks)), -cost) for cost, ranks in several
    ]


_KEPT = 100
"""Maximum number of sets that are returned; there may be one per collective, each of many ranks."""


def layer_spreads(layers: pa.Table, *, staged: bool = False) -> list[LayerSpread]:
    """Compare the ranks layer by layer; first comes the layer that holds the others up most.

    The mean is over the ranks that have the layer: stages of a pipeline have their own, which they
    may name alike.
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
            imbalance=ratio,
            uneven=not staged and row["layer"] != NO_LAYER and (ratio or 0) > UNEVEN,
        )
        for row in by_layer.to_pylist()
        for ratio in [row["gpu_ns_first"] / row["gpu_ns_mean"] if row["gpu_ns_mean"] else None]
    ]
    return sorted(spreads, key=lambda one: (one.mean_ns - one.most_ns, one.layer))
