"""Where the steps of a loop begin and end, and the rows in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where steps begin and end, by what marks them."""

    origin: str
    start: Int64Array
    end: Int64Array
    texts: tuple[str, ...] = ()
    """Of the ranges that mark them, one each."""

    @property
    def total_ns(self) -> int:
        """Sum up their lengths."""
        return int((self.end - self.start).sum())


def placed(
    bounds: Bounds, launch_ns: Int64Array, window: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Find the step of each row, MISSING for none; and when each begins, if not in a window cut."""
    step = np.searchsorted(bounds.start, launch_ns, side="right")
    ends = np.concatenate([[np.iinfo(np.int64).min], bounds.end])  # nothing is before the first
    step[launch_ns >= ends.take(step)] = 0
    step += MISSING
    return _uncut(bounds.start, step, launch_ns, window)


def _uncut(
    start: Int64Array, of_row: Int64Array, launch_ns: Int64Array, window: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Let each step begin in the window in which it ends."""
    if not len(window) or window.min() == window.max():
        return of_row, start
    last = np.full(len(start) + 1, MISSING)  # the last place is for what is in no step
    np.maximum.at(last, of_row, window)
    step_of_row = np.where(window == last[of_row], of_row, MISSING)
    cut = np.unique(of_row[step_of_row != of_row])
    first = np.full(len(start) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, step_of_row, launch_ns)
    start = start.copy()
    start[cut] = first[cut]
    return step_of_row, start
