"""Where the steps of a loop begin and end, and the rows in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyprof.arrays import Ints


OUTSIDE = -1


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where steps begin and end, by what marks them."""

    origin: str
    start: Ints
    end: Ints
    texts: tuple[str, ...] = ()
    """Of the ranges that mark them, one each."""

    @property
    def total_ns(self) -> int:
        """Sum up their lengths."""
        return int((self.end - self.start).sum())


def placed(bounds: Bounds, launch_ns: Ints, window: Ints) -> tuple[Ints, Ints]:
    """Find the step of each row, OUTSIDE for none; and when each begins, if not in a window cut."""
    step = np.searchsorted(bounds.start, launch_ns, side="right")
    ends = np.concatenate([[np.iinfo(np.int64).min], bounds.end])  # nothing is before the first
    step[launch_ns >= ends.take(step)] = 0
    step += OUTSIDE
    return _uncut(bounds.start, step, launch_ns, window)


def _uncut(start: Ints, of_row: Ints, launch_ns: Ints, window: Ints) -> tuple[Ints, Ints]:
    """Let each step begin in the window in which it ends."""
    if not len(window) or window.min() == window.max():
        return of_row, start
    last = np.full(len(start) + 1, OUTSIDE)  # the last place is for what is in no step
    np.maximum.at(last, of_row, window)
    step_of_row = np.where(window == last[of_row], of_row, OUTSIDE)
    cut = np.unique(of_row[step_of_row != of_row])
    first = np.full(len(start) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, step_of_row, launch_ns)
    start = start.copy()
    start[cut] = first[cut]
    return step_of_row, start
