"""Where the collectives of one rank lie beside those of another: captures begin at other ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.report.across.columns import Columns

    Ints = NDArray[np.int64]

FURTHEST = 64
"""How many collectives later or earlier a capture may begin."""
_COMPARED = 512
"""Collectives compared: as many again would tell no more."""
_CERTAIN_NS = 5_000
"""Nobody leaves closer together by chance."""
_SURER = 0.5
"""Another place than the one of equal numbers has to fit so much better."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of a rank: the first lies beside number `shift` of the first rank's."""

    rows: Ints
    shift: int
    spread_ns: float
    """How far apart the two ranks leave, the same for all taken away: the median."""


NOWHERE: Final = Placed(np.zeros(0, np.int64), 0, np.inf)


def place(columns: Columns, reference: Ints, rows: Ints) -> Placed:
    """Find where rows fit: the same sorts side by side, left after the same times. Else NOWHERE.

    A clock's offset moves all ends alike, so that it does not matter.
    """
    even = fit(columns, reference, rows, 0)
    if len(reference) == len(rows) and even.spread_ns <= _CERTAIN_NS:
        return even
    reach = min(FURTHEST, max(len(reference), len(rows)) - 1)
    others = [fit(columns, reference, rows, shift) for shift in range(-reach, reach + 1) if shift]
    best = min(others, key=lambda one: (one.spread_ns, abs(one.shift)), default=NOWHERE)
    return best if best.spread_ns < _SURER * even.spread_ns else even


def fit(columns: Columns, reference: Ints, rows: Ints, shift: int = 0) -> Placed:
    """Lay the rows at one place; NOWHERE where sorts differ, or too few lie side by side."""
    low, high = max(shift, 0), min(len(reference), shift + len(rows))
    least = (min(len(reference), len(rows)) + 1) // 2
    if high - low < least:
        return NOWHERE
    one = reference[low:high][:_COMPARED]
    other = rows[low - shift : high - shift][:_COMPARED]
    if (columns.sort[one] != columns.sort[other]).any():
        return NOWHERE
    apart = columns.end_ns[other] - columns.end_ns[one]
    return Placed(rows, shift, float(np.median(np.abs(apart - np.median(apart)))))
