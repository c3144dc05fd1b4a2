"""Which range encloses which, and which ranges that were left open count.

Ranges sorted by (thread, start, -end) make the nearest enclosing range of each the nearest
earlier one on its thread that ends no sooner. It is found for all ranges at once by jumping
along pointers, each of which skips only ranges that end too soon: as a stack would, without
a Python step per range, and right for ranges that overlap too.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING
from pyprof.marker import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask


@dataclass(frozen=True)
class Nest:
    """Ranges in (thread, start, -end) order, with the parent of each. All arrays: one per range."""

    thread: IntArray
    start: Int64Array
    end: Int64Array
    parent: IntArray
    """Position of the nearest enclosing range; MISSING at the top."""
    order: NDArray[np.int32]
    """Row of each range in the table that it came from."""

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """How many ranges are above each; counted in steps that double in length."""
        depth: NDArray[np.int32] = (self.parent != MISSING).astype(np.int32)
        above = self.parent.copy()
        active = np.flatnonzero(depth)
        while len(active):
            further = above.take(active)
            depth[active] += depth.take(further)
            above[active] = above.take(further)
            active = active.take(np.flatnonzero(above.take(active) != MISSING))
        return depth


def nest(
    thread: Int64Array, start: Int64Array, end: Int64Array, tiebreak: Callable[[], Int64Array]
) -> Nest:
    """Sort ranges and find the parent of each.

    Of ranges with equal bounds, the one with the lower `tiebreak` encloses the other; it is called
    only if needed.
    """
    order = by_start(thread, start)
    on, begun, ended = thread[order], start[order], end[order]
    later = (on[1:] != on[:-1]) | (begun[1:] > begun[:-1])
    if not (later | (ended[1:] < ended[:-1])).all():
        order = np.lexsort((tiebreak(), -end, start, thread))
    thread, start, end = thread[order], start[order], end[order]
    return Nest(thread, start, end, _parents(thread, end), order.astype(np.int32))


def by_start(thread: IntArray, start: Int64Array) -> Int64Array:
    """Order rows by thread and start."""
    order = np.argsort(start, kind="stable")
    return order[_order_by_value(thread[order])]


def _order_by_value(column: IntArray) -> Int64Array:
    """Order rows by a number, such as that of their thread; equal ones keep their order."""
    if not len(column) or (low := column.min()) == (high := column.max()):
        return np.arange(len(column))
    small = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    few = small.itemsize <= _SMALL_BYTES
    return np.argsort(column.astype(small) if few else column, kind="stable")


_SMALL_BYTES = 2
"""Numbers of this many bytes are sorted by radix, without comparing them."""


def _parents(thread: IntArray, end: Int64Array) -> IntArray:
    parent: IntArray = np.arange(-1, len(end) - 1, dtype=np.int32)
    at_top = np.ones(len(end), bool)  # ends after all that began before it on its thread
    bounds = [0, *(np.flatnonzero(thread[1:] != thread[:-1]) + 1).tolist(), len(end)]
    for first, last in pairwise(bounds):
        ends = end[first:last]
        np.greater(ends[1:], np.maximum.accumulate(ends)[:-1], out=at_top[first + 1 : last])
    parent[np.flatnonzero(at_top)] = MISSING
    active = np.flatnonzero((end[:-1] < end[1:]) & ~at_top[1:]) + 1
    above: IntArray = active - 1
    until = end.take(active)
    for _ in range(_STEPS):
        if not len(active):
            return parent
        above = parent.take(above)
        parent[active] = above
        left = np.flatnonzero(end.take(above) < until)  # `above` exists: see `at_top`
        active, above, until = active.take(left), above.take(left), until.take(left)
    return _sweep(thread, end, np.ones(len(end), bool))


_STEPS = 256
"""Levels that are climbed for all intervals at once; if there are more, one by one."""


def _sweep(thread: IntArray, end: Int64Array, encloses: Mask) -> Int64Array:
    """Find what encloses each of some sorted intervals, with a stack of the open ones.

    Some intervals are queries only, and enclose nothing.
    """
    around = np.full(len(end), MISSING)
    indices: list[int] = []
    until: list[int] = []  # the negative end of each, rising from the outside in
    last = MISSING
    rows = zip(thread.tolist(), (-end).tolist(), encloses.tolist(), strict=True)
    for index, (on, ends, opens) in enumerate(rows):
        if on != last:
            last = on
            indices.clear()
            until.clear()
        depth = bisect_right(until, ends)
        if depth:
            around[index] = indices[depth - 1]
        if opens:  # those that end sooner enclose nothing later that this one does not
            indices[depth:], until[depth:] = [index], [ends]
    return around


def innermost(ranges: Nest, thread: IntArray, start: Int64Array, end: Int64Array) -> Int64Array:
    """Find, for each interval, the innermost range on its thread that contains it; MISSING if none.

    Bounds may touch. The innermost range is the last to start; on a tie, the first to end.
    """
    # find the last range on the thread that starts no later
    last_range = np.full(len(start), MISSING)
    for name, rows in by_value(thread):
        first, last = bounds_of(ranges.thread, name)
        index = np.searchsorted(ranges.start[first:last], start[rows], side="right") - 1
        last_range[rows] = np.where(index >= 0, index + first, MISSING)
    leaf = last_range
    active = np.flatnonzero(leaf != MISSING)
    for _ in range(_STEPS):
        if not len(active):
            return leaf
        active = active[ranges.end[leaf[active]] < end[active]]
        leaf[active] = ranges.parent[leaf[active]]
        active = active[leaf[active] != MISSING]
    leaf[active] = _find_innermost(ranges, thread[active], start[active], end[active])
    return leaf


def _find_innermost(
    ranges: Nest, thread: IntArray, start: Int64Array, end: Int64Array
) -> Int64Array:
    """Find the innermost ranges around intervals, going through both once."""
    count = len(ranges.end)
    both = [np.concatenate(pair) for pair in ((ranges.thread, thread), (ranges.start, start))]
    order = np.lexsort((np.arange(count + len(end)), both[1], both[0]))  # stable: ranges first
    ends = np.concatenate([ranges.end, end])[order]
    above = _sweep(both[0][order], ends, order < count)
    enclosing = np.full(len(order), MISSING)
    enclosing[order] = np.where(above == MISSING, MISSING, order[above])
    return enclosing[count:]


def bounds_of(column: IntArray, value: int) -> tuple[int, int]:
    """Find the rows of a value in a sorted column: the first, and the one after the last."""
    both = np.array([value, value + 1], column.dtype)  # of another type, all would be converted
    first, last = np.searchsorted(column, both).tolist()
    return first, last


def by_value(column: IntArray) -> Iterator[tuple[int, Int64Array]]:
    """Yield each value, such as a thread, with its rows in order."""
    if not len(column):
        return
    order = _order_by_value(column)
    ordered = column[order]
    for rows in np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1):
        yield int(column[rows[0]]), rows


# An op that raises inside old instrumentation, or whose end the capture did not see, leaves its
# range open until the capture's last instant. Everything after it then seems to happen inside
# it. An open layer is believed; an open op only while no other op has come and gone inside it.
_DEEPEST = 8, 64
"""Maximum depth of ops, and of layers, that are open when a capture begins or ends. If more are,
bounds were lost, and it is unknown what is inside what.
"""

_OPS = (Kind.OP, Kind.TRACE, Kind.MODULE, Kind.SEQ)
_LAYERS = (Kind.LAYER, Kind.USER, Kind.STEP, Kind.OPTIMIZER)


def leaked(thread: Int64Array, start: Int64Array, kind: NDArray[np.int8], still_open: Mask) -> Mask:
    """Mask of open ranges that must not count: ops inside which another op was closed."""
    if not still_open.any():
        return still_open
    ops = np.isin(kind, _OPS)
    closed = ops & ~still_open
    suspect = ops & still_open
    last_closed = np.full(int(thread.max(initial=0)) + 1, MISSING)
    np.maximum.at(last_closed, thread[closed], start[closed])
    return suspect & (start <= last_closed[thread])


def mark_unbounded(thread: Int64Array, kind: NDArray[np.int8], unbounded: Mask) -> Mask:
    """Mask of ranges that lost a bound: all that a thread has open at once, if too many.

    `unbounded` marks the ranges that are open when the capture ends, except those that leaked, or
    those that are open when it begins.
    """
    lost_bound = np.zeros(len(thread), bool)
    rows = np.flatnonzero(unbounded)
    thread, kind = thread[rows], kind[rows]
    for chosen, most in ((np.isin(kind, _OPS), _DEEPEST[0]), (np.isin(kind, _LAYERS), _DEEPEST[1])):
        count = np.bincount(thread[chosen], minlength=int(thread.max(initial=0)) + 1)
        lost_bound[rows] |= (count > most)[thread]
    return lost_bound
