"""One clock for all ranks: those of different hosts differ, but a collective ends for all at once.

The offset of a rank is the median of the differences between its ends and those of ranks already
on the clock; a drift is taken away where that halves what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.ops.collectives import SYNCHRONISING
from pyprof.report.across.match import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.report.across.columns import Columns
    from pyprof.report.across.match import Group

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_SHARE = 95
"""The residual is what so many per cent of the differences stay below."""
_DRIFT_MOST = 5e-4
"""A computer's clock does not go wrong by more; what looks so is something else."""
_DRIFT_FROM = 12
"""Fewer differences than this tell no drift from chance."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How a rank's clock goes against that of the first rank. Times in ns."""

    offset_ns: int
    """What its clock shows more, at `since_ns`."""
    drift: float
    """What it gains more, ns per ns; 0.0 where none is told from chance."""
    since_ns: int
    collectives: int
    """How many of them it was aligned on; 0 for the first rank."""
    residual_ns: int
    """How far its ends lie from the others' once aligned; differences below tell nothing."""

    def align(self, times: Ints) -> Ints:
        """Put times of this rank on the first rank's clock."""
        late = np.rint((times - self.since_ns) * self.drift).astype(np.int64)
        return np.asarray(times - self.offset_ns - late)


@dataclass(frozen=True, slots=True)
class _Ends:
    """A group's ends, [rank, collective], and which of them captures hold."""

    group: Group
    known: NDArray[np.bool_]
    end_ns: Ints


def clocks(columns: Columns, groups: Sequence[Group]) -> Mapping[int, Clock]:
    """Align every rank that shares collectives with the first one, directly or through others."""
    ends = _ends(columns, groups)
    found: dict[int, Clock] = {}
    if ends:
        first = min(int(one.group.ranks[0]) for one in ends)
        found[first] = Clock(0, 0.0, 0, 0, 0)
    while joining := _joining(ends, found):
        for one in joining:
            _add(one, found)
    return _with_residuals(ends, found)


def _ends(columns: Columns, groups: Sequence[Group]) -> list[_Ends]:
    """Give the ends of collectives that nobody leaves early; of all, where there are no such."""
    holding = [
        np.array([name in SYNCHRONISING for name in columns.kinds] + [False])[columns.kind],
        np.ones(len(columns.kind), bool),
    ]
    for usable in holding:
        found = []
        for group in groups:
            known = (group.rows != ABSENT) & usable[group.rows]
            known &= known.sum(axis=0) > 1
            if known.any():
                chosen = known.any(axis=0)
                end = columns.end_ns[group.rows[:, chosen]]
                found.append(_Ends(group, known[:, chosen], end))
        if found:
            return found
    return []


def _joining(ends: Sequence[_Ends], found: Mapping[int, Clock]) -> list[_Ends]:
    """Give the groups that join ranks on the clock with others, most collectives first."""
    aligned = np.array(list(found), np.int64)
    shared = []
    for place, one in enumerate(ends):
        there = np.isin(one.group.ranks, aligned)
        count = int((one.known[there].any(axis=0) & one.known[~there].any(axis=0)).sum())
        if count:
            shared.append((-count, place))
    return [ends[place] for _, place in sorted(shared)]


def _add(one: _Ends, found: dict[int, Clock]) -> None:
    """Put the ranks of a group on the clock of those that are on it."""
    there = [row for row, rank in enumerate(one.group.ranks.tolist()) if rank in found]
    if len(there) == len(one.group.ranks):
        return
    reference = _middle(
        np.stack([found[int(one.group.ranks[row])].align(one.end_ns[row]) for row in there]),
        one.known[there],
    )
    told = one.known[there].any(axis=0)
    for row, rank in enumerate(one.group.ranks.tolist()):
        shared = told & one.known[row]
        if rank not in found and shared.any():
            found[rank] = _clock(one.end_ns[row][shared], reference[shared])


def _middle(times: Ints, known: NDArray[np.bool_]) -> Ints:
    """Give the median over ranks of each collective's times, as whole ns; 0 where none is known."""
    ordered = np.sort(np.where(known, times, np.iinfo(np.int64).max), axis=0)
    count = np.maximum(known.sum(axis=0), 1)
    columns = np.arange(times.shape[1])
    low, high = ordered[(count - 1) // 2, columns], ordered[count // 2, columns]
    return np.where(known.any(axis=0), low + (high - low) // 2, 0)


def _clock(own: Ints, reference: Ints) -> Clock:
    apart = own - reference
    offset = int(np.rint(np.median(apart)))
    level = Clock(offset, 0.0, int(own[0]), len(own), 0)
    if len(own) < _DRIFT_FROM:
        return level
    order = np.argsort(own, kind="stable")
    early, late = order[: len(own) // 3], order[-(len(own) // 3) :]
    span = float(np.median(own[late]) - np.median(own[early]))
    if span <= 0:
        return level
    drift = float(np.median(apart[late]) - np.median(apart[early])) / span
    since = int(np.median(own))
    at = int(np.rint(np.median(apart - drift * (own - since))))
    sloped = Clock(at, drift, since, len(own), 0)
    left = [
        np.percentile(np.abs(clock.align(own) - reference), _SHARE) for clock in (level, sloped)
    ]
    return sloped if left[1] < left[0] / 2 and abs(drift) < _DRIFT_MOST else level


def _with_residuals(ends: Sequence[_Ends], found: Mapping[int, Clock]) -> Mapping[int, Clock]:
    """Find how far each rank's ends lie from the middle of its groups'."""
    left: dict[int, list[Ints]] = {rank: [] for rank in found}
    for one in ends:
        rows = [row for row, rank in enumerate(one.group.ranks.tolist()) if rank in found]
        if len(rows) < 2:  # noqa: PLR2004 - nobody to compare with
            continue
        aligned = np.stack(
            [found[int(one.group.ranks[row])].align(one.end_ns[row]) for row in rows]
        )
        middle = _middle(aligned, one.known[rows])
        for row, times in zip(rows, aligned, strict=True):
            left[int(one.group.ranks[row])].append(np.abs(times - middle)[one.known[row]])
    return {
        rank: Clock(clock.offset_ns, clock.drift, clock.since_ns, clock.collectives,
                    int(np.ceil(np.percentile(np.concatenate(left[rank]), _SHARE)))
                    if left[rank] else 0)
        for rank, clock in sorted(found.items())
    }  # fmt: skip
