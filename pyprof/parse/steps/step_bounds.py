"""Where the steps of a loop begin and end, and the rows in each.

With several optimizers in one step of the loop, as a GAN has, every `.step()` ends a range,
whichever optimizer it belongs to. Two optimizers of one class have the same range, but other
parameters: their kernels differ in shape, or in the line that calls them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.records.records import DictionaryColumn, Records


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where steps begin and end, by what marks them."""

    origin: str
    start: Int64Array
    end: Int64Array
    texts: tuple[str, ...] = ()
    """Texts of the ranges that mark the steps, one each."""

    @property
    def total_ns(self) -> int:
        """Total length of the steps."""
        return int((self.end - self.start).sum())


def assign_rows(
    bounds: Bounds, launch_ns: Int64Array, window: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Find the step of each row, MISSING for none, and when each step begins in its window."""
    step = np.searchsorted(bounds.start, launch_ns, side="right")
    ends = np.concatenate([[np.iinfo(np.int64).min], bounds.end])  # nothing is before the first
    step[launch_ns >= ends.take(step)] = 0
    step += MISSING
    # Let each step begin in the window in which it ends.
    start = bounds.start
    if not len(window) or window.min() == window.max():
        return step, start
    last = np.full(len(start) + 1, MISSING)  # the last entry is for rows in no step
    np.maximum.at(last, step, window)
    step_of_row = np.where(window == last[step], step, MISSING)
    cut = np.unique(step[step_of_row != step])
    first = np.full(len(start) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, step_of_row, launch_ns)
    start = start.copy()
    start[cut] = first[cut]
    return step_of_row, start


_MAX_OPTIMIZERS = 16
"""Maximum number of optimizer steps in one step of the loop."""
_ALIKE = 0.9
"""Share of the steps whose optimizer must be the one that stepped a round before."""
_WHAT = ("kLongName", "grid", "sizes", "trace")
"""What distinguishes the kernels of one optimizer from those of another."""
_BASE = 0x9E3779B97F4A7C15
"""Odd, so that distinct codes have distinct products of 64 bits."""


def whole_steps(bounds: Bounds, records: Records, launch_ns: Int64Array) -> Bounds:
    """Join the steps of optimizers that step in turn; an incomplete round at the end is dropped."""
    of_row, _ = assign_rows(bounds, launch_ns, records.numpy("window", 0))
    # find after how many steps the same optimizer steps again; 1 if that is not clear
    is_optimizer = records.dictionary("dir").is_in("optim")
    rows = np.flatnonzero(is_optimizer & (of_row != MISSING))
    digest = np.zeros(len(bounds.start), np.uint64)
    if len(rows):
        code = number_combinations(*(_values(records.dictionary(name), rows) for name in _WHAT))
        hashed = (code.astype(np.uint64) + np.uint64(1)) * np.uint64(_BASE)
        hashed ^= hashed >> np.uint64(29)
        np.add.at(digest, of_row[rows], hashed * hashed)  # a sum has no order
    optimizers = digest.astype(np.int64)
    longest = min(_MAX_OPTIMIZERS, len(optimizers) // 2)
    round_length = next((n for n in range(1, longest + 1) if _repeats(optimizers, n)), 1)
    if round_length == 1:
        return bounds
    last = np.arange(round_length - 1, len(bounds.start), round_length)
    return Bounds(bounds.origin, bounds.start[last - round_length + 1], bounds.end[last])


def _values(column: DictionaryColumn, rows: Int64Array) -> Int64Array:
    """Number the values of some rows; a column may hold equal values several times."""
    used, place = np.unique(column.index[rows], return_inverse=True)
    numbers: dict[str, int] = {}
    texts = (repr(column.values[index]) if index >= 0 else "" for index in used.tolist())
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts]).take(place)


def _repeats(optimizers: Int64Array, length: int) -> bool:
    """Check the second half: the first steps of an optimizer also create its state."""
    same = optimizers[length:] == optimizers[:-length]
    return bool(same[len(same) // 2 :].mean() >= _ALIKE)
