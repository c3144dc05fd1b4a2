"""Where the collectives of one rank lie beside those of another: captures begin at other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.arrays import Integers
    from pyprof.report.across.columns import Columns


_COMPARED = 512
"""Collectives compared: as many again would tell no more."""
_ENOUGH = 64
"""Collectives in a row that tell a place; of few, half of them do."""
_FAR_NS = 1e6
"""A time that differs by more is wrong, no matter how much."""
_CERTAIN_NS = 5_000
"""Nobody leaves closer together by chance."""
_SURER = 0.5
"""Another place than the one of equal numbers has to fit so much better."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of a rank beside those of the first."""

    rows: Integers
    at: Integers
    """The number of the first rank's row that each lies beside; rising, also below 0."""
    spread_ns: float
    """How far apart the two ranks leave, the same for all taken away: the median."""
    left_out: int = 0
    """Rows that the first rank's capture lacks among its own."""


NOWHERE: Final = Placed(np.zeros(0, np.int64), np.zeros(0, np.int64), np.inf)


def first(rows: Integers) -> Placed:
    """Let others be placed beside these."""
    return Placed(rows, np.arange(len(rows)), 0.0)


def place(columns: Columns, reference: Integers, rows: Integers) -> Placed:
    """Find where rows fit: the same sorts side by side, left after the same times. Else NOWHERE.

    A clock's offset moves all ends alike, so that it does not matter.
    """
    even = fit(columns, reference, rows, 0)
    if len(reference) == len(rows) and even.spread_ns <= _CERTAIN_NS:
        return even
    shifts = sorted(set(likely(columns, reference, rows)), key=abs)
    others = [fit(columns, reference, rows, shift) for shift in shifts if shift]
    best = min(others, key=lambda one: one.spread_ns, default=NOWHERE)
    return best if best.spread_ns < _SURER * even.spread_ns else even


def fit(columns: Columns, reference: Integers, rows: Integers, shift: int = 0) -> Placed:
    """Lay the rows at one place; NOWHERE where sorts differ, or too few lie side by side."""
    low, high = max(shift, 0), min(len(reference), shift + len(rows))
    if high - low < least(reference, rows):
        return NOWHERE
    one, other = reference[low:high], rows[low - shift : high - shift]
    same = columns.same
    if (same[columns.signature[one]] != same[columns.signature[other]]).any():
        return NOWHERE
    apart = columns.end_ns[other[:_COMPARED]] - columns.end_ns[one[:_COMPARED]]
    at = np.arange(shift, shift + len(rows))
    return Placed(rows, at, float(np.median(np.abs(apart - np.median(apart)))))


def least(reference: Integers, rows: Integers) -> int:
    """Give how many have to lie side by side."""
    return min((min(len(reference), len(rows)) + 1) // 2, _ENOUGH)


def likely(columns: Columns, reference: Integers, rows: Integers) -> Iterable[int]:
    """Give the shifts that are worth a closer look; of few collectives, all.

    Of many, those where the first, the middle or the last few of one rank are left after the
    likest times of the other: if enough is in both captures, one of these is.
    """
    if max(len(reference), len(rows)) <= _ENOUGH:
        return range(1 - len(rows), len(reference))
    length = least(reference, rows)
    return [
        sign * (_likest(columns, one, other[first : first + length]) - first)
        for one, other, sign in ((reference, rows, 1), (rows, reference, -1))
        for first in (0, (len(other) - length) // 2, len(other) - length)
    ]


def _likest(columns: Columns, rows: Integers, few: Integers) -> int:
    """Give where a few collectives of one rank fit best among those of another."""
    places = len(rows) - len(few) + 1
    after, wanted = np.diff(columns.end_ns[rows]), np.diff(columns.end_ns[few]).tolist()
    same = columns.same[columns.signature[rows]]
    apart = np.zeros(places)
    for number, sort in enumerate(columns.same[columns.signature[few]].tolist()):
        apart[same[number : number + places] != sort] += _FAR_NS
        if number < len(wanted):
            here = np.abs(after[number : number + places] - wanted[number])
            apart += np.minimum(here, _FAR_NS)
    return int(apart.argmin())
