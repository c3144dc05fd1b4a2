"""Sets of time, as sorted intervals that do not touch: union, intersection, difference, length.

Independent of what happens in them. Half-open: a set holds start but not end. Units are the
caller's; int64 throughout, so that nanoseconds add up exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.arrays import Int64Array, Mask


@dataclass(frozen=True, slots=True)
class Intervals:
    """A set of time: `start[i] < end[i] < start[i + 1]`. Make one with `union_of`."""

    start: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, chosen: slice | Mask) -> Intervals:
        return Intervals(self.start[chosen], self.end[chosen])

    @property
    def total(self) -> int:
        """The length of the set."""
        return int((self.end - self.start).sum())

    def __or__(self, other: Intervals) -> Intervals:
        if not (len(self) and len(other)):
            return self if len(self) else other
        return union_of(
            np.concatenate([self.start, other.start]), np.concatenate([self.end, other.end])
        )

    def __and__(self, other: Intervals) -> Intervals:
        if not (len(self) and len(other)):
            return EMPTY
        instant = np.concatenate([self.start, other.start, self.end, other.end])
        step = np.repeat(np.array([1, -1]), len(self) + len(other))
        order = np.argsort(instant, kind="stable")
        instant, depth = instant[order], np.cumsum(step[order])
        in_both = depth[:-1] >= 2  # noqa: PLR2004 - both sets
        return union_of(instant[:-1][in_both], instant[1:][in_both])

    def __sub__(self, other: Intervals) -> Intervals:
        if not (len(self) and len(other)):
            return self
        return self & complement(other, int(self.start[0]), int(self.end[-1]))

    def cut(self, start: int, end: int) -> Intervals:
        """Keep what lies between two instants."""
        low, high = np.maximum(self.start, start), np.minimum(self.end, end)
        keep = low < high
        return Intervals(low[keep], high[keep])

    def near(self, start: int, end: int) -> Intervals:
        """Drop the intervals that end before `start` or begin after `end`, by binary search."""
        low, high = np.searchsorted(self.end, start), np.searchsorted(self.start, end, "right")
        return self[low:high]

    def length_within(self, start: Int64Array, end: Int64Array) -> Int64Array:
        """Return the length of the set within each of many intervals, which may overlap."""
        return self._before(end) - self._before(start)

    def _before(self, instant: Int64Array) -> Int64Array:
        """The length of the set before each instant."""
        length = np.concatenate([[0], np.cumsum(self.end - self.start)])
        index = np.searchsorted(self.start, instant, side="right")
        over = self.end[index - 1] - instant if len(self) else np.zeros(len(instant), np.int64)
        return np.asarray(length[index] - np.where(index > 0, np.maximum(over, 0), 0))


EMPTY = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def union_of(start: Int64Array, end: Int64Array) -> Intervals:
    """Merge intervals in any order, overlapping or not; empty and reversed ones are left out."""
    keep = end > start
    if not keep.all():
        start, end = start[keep], end[keep]
    if not len(start):
        return EMPTY
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    first = np.concatenate([[True], start[1:] > end[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Intervals(start[first], end[last])


def union(sets: Iterable[Intervals]) -> Intervals:
    """Merge any number of sets."""
    both = [(each.start, each.end) for each in sets] or [(EMPTY.start, EMPTY.end)]
    return union_of(*(np.concatenate(part) for part in zip(*both, strict=True)))


def longest(sets: Iterable[Intervals]) -> Intervals:
    """Return the longest of some sets; `EMPTY` if there are none."""
    return max(sets, key=lambda each: each.total, default=EMPTY)


def complement(busy: Intervals, start: int, end: int) -> Intervals:
    """Return the time between two instants that a set leaves free."""
    inner = busy.cut(start, end)
    return union_of(np.append(start, inner.end), np.append(inner.start, end))
