"""Who the others wait for: per rank, and per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.waiting import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.report.across.columns import Columns
    from pyprof.report.across.match import Group
    from pyprof.report.across.waiting import Waits


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank as the others see it. Times in ns."""

    rank: int
    last: int
    """Collectives to which it came last, by more than the clocks' residual."""
    of: int
    """Collectives in which it took part."""
    cost_ns: int
    """What all others together waited in those."""
    waited_ns: int
    """What it waited itself, for whomever."""
    own_ns: float | None
    """The median step without communication that nothing was computed beside; None: no steps."""
    excess_ns: float | None
    """How much more of that it has than the median rank. No clock of another rank is in it."""


@dataclass(frozen=True, slots=True)
class StepWait:
    """What a rank cost the others in one step."""

    step: int
    rank: int
    last: int
    cost_ns: int


@dataclass(frozen=True, slots=True)
class Together:
    """Ranks of a group that came last within the clocks' residual of each other."""

    ranks: tuple[int, ...]
    cost_ns: int
    """What all others together waited for them."""


@dataclass(frozen=True, slots=True)
class Late:
    """The collectives of one sort, in one group, to which a rank came last."""

    rank: int
    group: Group
    kind: str | None
    bytes: int | None
    last: int
    cost_ns: int


def stragglers(waits: Sequence[Waits], steps: pa.Table, ranks: Sequence[int]) -> list[Straggler]:
    """Total every rank, the dearest first."""
    own = own_times(steps)
    middle = float(np.median(list(own.values()))) if own else None
    last, of, cost, waited = (dict.fromkeys(ranks, 0) for _ in range(4))
    for one in waits:
        costs = one.others_ns
        for row, rank in enumerate(one.ranks.tolist()):
            blamed = one.last == rank
            last[rank] += int(blamed.sum())
            of[rank] += int(one.there[row].sum())
            cost[rank] += int(costs[blamed].sum())
            waited[rank] += int(one.wait_ns[row].sum())
    found = [
        Straggler(
            rank, last[rank], of[rank], cost[rank], waited[rank], own.get(rank),
            own[rank] - middle if rank in own and middle is not None else None,
        )
        for rank in ranks
    ]  # fmt: skip
    return sorted(found, key=lambda one: (-one.cost_ns, -(one.excess_ns or 0.0), one.rank))


def own_times(steps: pa.Table) -> dict[int, float]:
    """Give each rank's median step without exposed communication, warm-up left out; ns."""
    rank, duration, exposed = (
        steps.column(name).to_numpy() for name in ("rank", "duration_ns", "exposed_ns")
    )
    warm = np.asarray(steps.column("warm_up").to_numpy(zero_copy_only=False), bool)
    rank, own = rank[~warm], (duration - exposed)[~warm]
    order = np.argsort(rank, kind="stable")
    number, first = np.unique(rank[order], return_index=True)
    parts = np.split(own[order], first[1:])
    return {
        rank: float(np.median(part)) for rank, part in zip(number.tolist(), parts, strict=False)
    }


def by_collective(columns: Columns, waits: Sequence[Waits]) -> list[Late]:
    """Total what each rank cost at each sort of collective, the dearest first."""
    found = []
    for one in waits:
        costs, sort = one.others_ns, columns.sort[one.rows]
        blamed = np.flatnonzero(one.last != NOBODY)
        pairs = np.stack([one.last[blamed], sort[blamed]], axis=1)
        for rank, code in np.unique(pairs, axis=0).tolist():
            chosen = (one.last == rank) & (sort == code)
            row = one.rows[chosen][0]
            found.append(
                Late(
                    rank, one.group, columns.text(columns.kinds, columns.kind[row]),
                    int(columns.bytes[row]) if columns.bytes[row] >= 0 else None,
                    int(chosen.sum()), int(costs[chosen].sum()),
                )
            )  # fmt: skip
    return sorted(found, key=lambda late: (-late.cost_ns, late.rank))


def by_step(waits: Sequence[Waits]) -> list[StepWait]:
    """Total what each rank cost in each step; collectives outside of steps are left out."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for one in waits:
        costs = one.others_ns
        for place in np.flatnonzero((one.last != NOBODY) & (one.step >= 0)).tolist():
            key = (int(one.step[place]), int(one.last[place]))
            count, cost = found.get(key, (0, 0))
            found[key] = (count + 1, cost + int(costs[place]))
    return [StepWait(*key, *found[key]) for key in sorted(found)]


def together(waits: Sequence[Waits]) -> list[Together]:
    """Total what was waited for several that came last together, the dearest first."""
    found: dict[tuple[int, bytes], int] = {}
    for number, one in enumerate(waits):
        costs = one.others_ns
        for place in np.flatnonzero((one.last == NOBODY) & (costs > 0)).tolist():
            key = (number, one.latest[:, place].tobytes())
            found[key] = found.get(key, 0) + int(costs[place])
    several = [
        Together(tuple(waits[number].ranks[np.frombuffer(mask, bool)].tolist()), cost)
        for (number, mask), cost in found.items()
    ]
    return sorted(several, key=lambda one: (-one.cost_ns, one.ranks))
