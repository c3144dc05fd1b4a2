"""When the windows of a capture were recorded: each from its first row to its last, as one alone.

Between them the profiler was paused: what ran then is not known, and that time is nobody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.analysis.time.intervals import Intervals, complement, union_of
from pyprof.records.records import distinct

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, Mask


class Recorded(NamedTuple):
    """What some rows tell of it. Times in ns."""

    start_ns: int
    end_ns: int
    paused: Intervals
    """In between; empty where there is one window, or work of one ran on into the next."""
    windows: int
    """How many the rows are from."""


def recorded(chosen: Mask, window: Int64Array, start: Int64Array, end: Int64Array) -> Recorded:
    """Measure windows from the window, start and end of rows; at least one of them is chosen.

    A window begins where the work before its first chosen row ended, or with that row.
    """
    names, number = distinct(window)
    count, limits = len(names), np.iinfo(np.int64)
    first, last, before = (np.full(count, value) for value in (limits.max, limits.min, limits.min))
    if count == 1 and chosen.all():  # nearly always
        first[0], last[0] = start.min(), end.max()
    else:
        np.minimum.at(first, number[chosen], start[chosen])
        np.maximum.at(last, number[chosen], end[chosen])
        earlier = ~chosen & (start < first[number])
        np.maximum.at(before, number[earlier], end[earlier])
    there = last > limits.min
    first = np.where(before > limits.min, np.minimum(first, before), first)[there]
    last = last[there]
    bounds = int(first.min()), int(last.max())
    return Recorded(*bounds, complement(union_of(first, last), *bounds), int(there.sum()))
