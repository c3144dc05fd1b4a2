"""One clock for all ranks: hosts' clocks differ, but a collective ends for all ranks at once.

Ranks of one capture share a clock and stay as they are. The offset of a clock is the median of the
differences between its ends and those of clocks already aligned; drift is removed if that halves
the residual.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.stream_alignment import TOGETHER_NS
from pyprof.arrays import MISSING
from pyprof.ops.torch.collectives import SYNCHRONISING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.ranks.match import CollectiveMatrix
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.arrays import IntArray


_SHARE = 95
"""The residual is this percentile of the differences."""
_DRIFT_MAX = 5e-4
"""A computer's clock drifts by no more than this; a larger drift is something else."""
_DRIFT_FROM = 12
"""With fewer differences than this, drift may be chance."""
_RESIDUAL_FROM = 5
"""With fewer, nothing is left to check the offset by: all were used to find it."""


@dataclass(frozen=True, slots=True)
class Clock:
    """A rank's clock relative to another's. Times in ns."""

    number: int
    """Equal for ranks of one capture: they have one clock."""
    against: int
    """The rank whose clock it is converted to: the first of the ranks joined by collectives."""
    _: KW_ONLY
    offset_ns: int = 0
    """How far it is ahead of the clock of `against`, at `since_ns`."""
    drift: float = 0.0
    """What it gains on that clock, ns per ns; 0.0 if it may be chance."""
    since_ns: int = 0
    collectives: int = 0
    """How many of them it was aligned on; 0 for one that was not moved."""
    residual_ns: int = 0
    """How far the rank's ends lie from those of other clocks once aligned: differences between two
    ranks below the sum of their residuals mean nothing. 0 if all share one clock.
    """
    sure: bool = True
    """Whether no rank leaves its aligned collectives early, as a broadcast's root does."""

    def align(self, times: IntArray) -> IntArray:
        """Put times of this rank on the first rank's clock."""
        late = np.rint((times - self.since_ns) * self.drift).astype(np.int64)
        return np.asarray(times - self.offset_ns - late)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ends of a group's collectives, [rank, collective], and which of them captures hold."""

    ranks: list[int]
    clocks: list[int]
    """The number of each rank's clock."""
    known: NDArray[np.bool_]
    end_ns: IntArray
    sure: bool
    """Whether no rank leaves early."""


def clocks(
    columns: Collectives, matrices: Sequence[CollectiveMatrix], numbers: Mapping[int, int]
) -> Mapping[int, Clock]:
    """Align the ranks that share collectives, directly or through others, with the first of them.

    `numbers`: the number of each rank's clock; equal ones need no alignment.
    """
    ends = _ends(columns, matrices, numbers)
    ranks_of: dict[int, list[int]] = {}
    for rank, number in sorted(numbers.items()):
        ranks_of.setdefault(number, []).append(rank)
    places_of: dict[int, list[int]] = {number: [] for number in ranks_of}
    for index, one in enumerate(ends):
        for number in set(one.clocks):
            places_of[number].append(index)
    clock_of: dict[int, Clock] = {}
    for number, (first, *_) in ranks_of.items():
        if number in clock_of:
            continue
        clock_of[number] = Clock(number, first)
        # align others with it, directly or through others, the fullest groups first
        joined, done = [number], set[int]()
        while joined:
            near = {place for each in joined for place in places_of[each]} - done
            done |= near
            fullest = sorted(near, key=lambda place: (-ends[place].known.shape[1], place))
            joined = [each for place in fullest for each in _add(ends[place], clock_of)]
    shared = {rank for one in ends for rank in one.ranks}
    shared |= {rank for ranks in ranks_of.values() if len(ranks) > 1 for rank in ranks}
    return _add_residuals(ends, {rank: clock_of[numbers[rank]] for rank in sorted(shared)})


def _ends(
    columns: Collectives, matrices: Sequence[CollectiveMatrix], numbers: Mapping[int, int]
) -> Sequence[_Ends]:
    """The ends of collectives that no rank leaves early; if there are none, of all collectives."""
    what = columns.signatures
    holding = what.kind.is_in(*SYNCHRONISING)
    for usable, sure in ((holding, True), (np.ones_like(holding), False)):
        ends_of_groups = []
        for matrix in matrices:
            present = (matrix.rows != MISSING) & usable[columns.signature[matrix.rows]]
            present &= present.sum(axis=0) > 1
            chosen = present.any(axis=0)
            if chosen.any():
                ranks = matrix.group.ranks.tolist()
                clock = [numbers[rank] for rank in ranks]
                end = columns.end_ns[matrix.rows[:, chosen]]
                ends_of_groups.append(_Ends(ranks, clock, present[:, chosen], end, sure))
        if ends_of_groups:
            return ends_of_groups
    return []


def _add(one: _Ends, clock_of: dict[int, Clock]) -> list[int]:
    """Align the clocks of a group with those already aligned; return their numbers."""
    rows_of: dict[int, list[int]] = {}
    for row, number in enumerate(one.clocks):
        rows_of.setdefault(number, []).append(row)
    right = [row for number, rows in rows_of.items() if number in clock_of for row in rows]
    wrong = {number: rows for number, rows in rows_of.items() if number not in clock_of}
    if not wrong or not right:
        return []
    against = clock_of[one.clocks[right[0]]].against
    reference = _middle(
        np.stack([clock_of[one.clocks[row]].align(one.end_ns[row]) for row in right]),
        one.known[right],
    )
    has_reference = one.known[right].any(axis=0)
    joined = []
    for number, rows in wrong.items():
        shared = has_reference & one.known[rows].any(axis=0)
        if shared.any():
            own = _middle(one.end_ns[rows], one.known[rows])
            clock_of[number] = _clock(
                own[shared], reference[shared], Clock(number, against, sure=one.sure)
            )
            joined.append(number)
    return joined


def _middle(times: IntArray, present: NDArray[np.bool_]) -> IntArray:
    """The median over ranks of each collective's times, as whole ns; 0 if unknown."""
    ordered = np.sort(np.where(present, times, np.iinfo(np.int64).max), axis=0)
    count = np.maximum(present.sum(axis=0), 1)
    columns = np.arange(times.shape[1])
    low, high = ordered[(count - 1) // 2, columns], ordered[count // 2, columns]
    return np.where(present.any(axis=0), low + (high - low) // 2, 0)


def _clock(own: IntArray, reference: IntArray, clock: Clock) -> Clock:
    apart = own - reference
    level = replace(clock, offset_ns=int(np.rint(np.median(apart))), collectives=len(own))
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
    sloped = replace(level, offset_ns=at, drift=drift, since_ns=since)
    left = [
        np.percentile(np.abs(clock.align(own) - reference), _SHARE) for clock in (level, sloped)
    ]
    return sloped if left[1] < left[0] / 2 and abs(drift) < _DRIFT_MAX else level


def _add_residuals(ends: Sequence[_Ends], clock: Mapping[int, Clock]) -> Mapping[int, Clock]:
    """Add residuals: how far each rank's ends lie from the medians of groups of several clocks."""
    left: dict[int, list[IntArray]] = {}
    for one in ends:
        if len(set(one.clocks)) > 1:
            aligned = np.stack([
                clock[rank].align(times) for rank, times in zip(one.ranks, one.end_ns, strict=True)
            ])  # fmt: skip
            aligned -= _middle(aligned, one.known)
            for rank, present, apart in zip(one.ranks, one.known, aligned, strict=True):
                left.setdefault(rank, []).append(np.abs(apart[present]))
    residual_of = {}
    for rank, parts in left.items():
        differences = np.concatenate(parts)
        residual_ns = int(np.ceil(np.percentile(differences, _SHARE)))
        few = len(differences) < _RESIDUAL_FROM
        residual_of[rank] = max(residual_ns, TOGETHER_NS) if few else residual_ns
    return {rank: replace(one, residual_ns=residual_of.get(rank, 0)) for rank, one in clock.items()}
