"""Collectives that a tool lost in the middle of one rank's capture: later ones move up.

From there on, matching by order alone would pair different collectives. Times show where: ranks
leave together before the loss, apart after it, and together again if shifted by some collectives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.stream_alignment import (
    UNALIGNED,
    Alignment,
    candidate_shifts,
    min_overlap,
)

if TYPE_CHECKING:
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.arrays import IntArray, Mask


_APART_NS = 100_000
"""Between consecutive collectives, drift and leaving times change the distance by less."""
_AHEAD, _WRONG = 8, 4
"""Number of collectives in a window, and how many must be wrong: one late end is not a loss."""
_FURTHEST = 64
"""How many may be lost at once."""
_MIN_RUN = 3
"""This many in a row do not fit by chance."""


def realign(
    columns: Collectives, reference: IntArray, rows: IntArray, placed: Alignment
) -> Alignment:
    """Align rows with the reference if either lost collectives; else return `placed`.

    `placed` is also returned if nothing fits. Rows that the reference lost are left out.
    """
    pair = _Pair(columns, reference, rows)
    at_once = [] if placed is UNALIGNED else [int(placed.at[0])]
    if any(pair.matching_run(*_sides(start)) == pair.common(*_sides(start)) for start in at_once):
        return placed
    others = sorted({0, *candidate_shifts(columns, reference, rows)}, key=abs)
    for start in dict.fromkeys([*at_once, *others]):
        at = _realign(pair, start, np.full(len(rows), _LEFT_OUT))
        if at is None:
            continue
        matched = at != _LEFT_OUT
        if ((at[matched] >= 0) & (at[matched] < len(reference))).sum() >= min_overlap(
            reference, rows
        ):
            spread = 0.0 if placed is UNALIGNED else placed.spread_ns
            return Alignment(rows[matched], at[matched], spread, int((~matched).sum()))
    return placed


def _realign(pair: _Pair, start: int, at: IntArray) -> IntArray | None:
    """Fill in the other's row that matches each row; None if that is uncertain."""
    one, other = _sides(start)
    at[:other] = np.arange(start, start + other)
    while True:
        run = pair.matching_run(one, other)
        at[other : other + run] = np.arange(one, one + run)
        if run == pair.common(one, other):
            at[other + run :] = np.arange(one + run, one + len(at) - other)
            return at
        skip = pair.find_skip(one + run, other + run) if run >= _MIN_RUN else None
        if skip is None:
            return None
        one, other = one + run + skip[0], other + run + skip[1]


def _sides(start: int) -> tuple[int, int]:
    """The first row of each that lies beside a row of the other, at this shift."""
    return max(start, 0), max(-start, 0)


_LEFT_OUT = np.iinfo(np.int64).min


class _Pair:
    """Two ranks' collectives of a group."""

    def __init__(self, columns: Collectives, reference: IntArray, rows: IntArray) -> None:
        self._ends = columns.end_ns[reference], columns.end_ns[rows]
        same = columns.same[columns.signature[reference]], columns.same[columns.signature[rows]]
        self._same = same

    def common(self, one: int, other: int) -> int:
        """Return the number of pairs if one side begins at `one` and the other at `other`."""
        return max(min(len(self._ends[0]) - one, len(self._ends[1]) - other), 0)

    def matching_run(self, one: int, other: int) -> int:
        """Count the pairs from there on that seem to be the same, up to where most are not."""
        if not (count := self.common(one, other)):
            return 0
        apart, wrong = self._distances(one, other, count)
        wrong[1:] |= np.abs(np.diff(apart)) > _APART_NS
        ahead = np.convolve(wrong, np.ones(_AHEAD, int))[_AHEAD - 1 :]  # wrong ones in each window
        left = np.minimum(np.arange(count, 0, -1), _AHEAD)
        lasting = np.flatnonzero(wrong & (ahead >= np.minimum(_WRONG, left)))
        return int(lasting[0]) if len(lasting) else count

    def find_skip(self, one: int, other: int) -> tuple[int, int] | None:
        """Return how many to leave out of either, so that the rest fits as before; else None."""
        before, _ = self._distances(one - _MIN_RUN, other - _MIN_RUN, _MIN_RUN)
        for number in range(1, _FURTHEST + 1):
            for pair in ((number, 0), (0, number)):
                first = one + pair[0], other + pair[1]
                count = min(self.common(*first), _AHEAD)
                apart, wrong = self._distances(*first, count)
                fits = ~wrong & (np.abs(apart - np.median(before)) <= _APART_NS)
                if count >= _MIN_RUN and fits.all():
                    return pair
        return None

    def _distances(self, one: int, other: int, count: int) -> tuple[IntArray, Mask]:
        """The distances of the ends, and the mask of those whose kinds differ."""
        indices = slice(one, one + count), slice(other, other + count)
        ends, same = (
            [part[index] for part, index in zip(pair, indices, strict=True)]
            for pair in (self._ends, self._same)
        )
        return ends[1] - ends[0], same[0] != same[1]
