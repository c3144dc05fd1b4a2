"""Which API call launched each piece of GPU work, and the chain of op calls around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, distinct_values, ints
from pyprof.parse.steps.profiler_windows import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray
    from pyprof.parse.steps.profiler_windows import RecordingWindows
    from pyprof.records.records import Records
    from pyprof.schema import Capture


def launches(capture: Capture, activities: pa.Table, windows: RecordingWindows) -> Int64Array:
    """Find the row of the API call that launched each activity; MISSING if there is none.

    Correlation ids are unique only within a process, and only within a window if CUPTI was closed
    between windows. If a runtime call and the driver call inside it share an id, the outer one is
    the launch. One call may launch many activities (a CUDA graph).
    """
    calls = capture.calls
    if not len(calls):
        return np.full(len(activities), MISSING)
    start = ints(calls.column("start"))
    owners = [processes(capture), ints(activities.column("pid"))]
    corr = [ints(table.column("corr")) for table in (calls, activities)]
    ours, theirs = _keys(owners, corr)
    if windows and _again(ours, windows.at(owners[0], start)):
        times = start, ints(activities.column("end"))
        parts = [windows.apart(pid, time) for pid, time in zip(owners, times, strict=True)]
        ours, theirs = _keys(parts, corr)
    row = _outermost(ours, start, ints(calls.column("end")), theirs)
    return np.where((ours[row] == theirs) & (theirs != MISSING), row, MISSING)


def _outermost(
    keys: Int64Array, start: Int64Array, end: Int64Array, wanted: Int64Array
) -> Int64Array:
    """Find for each wanted key the call of that key that encloses the others; else any call."""
    low, high = int(keys.min()), int(keys.max())
    if high - low > _DENSE * len(keys):
        order = np.lexsort((-end, start, keys))
        index = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
        return np.asarray(order[index])
    # Ids nearly always count up, so that a table with an entry per id is small and needs no sort.
    rows = np.arange(len(keys))
    row_of = np.zeros(high - low + 1, np.int64)
    row_of[keys - low] = rows
    if len(others := np.flatnonzero(row_of[keys - low] != rows)):
        several = np.zeros(len(row_of), bool)
        several[keys[others] - low] = True
        rows = np.flatnonzero(several[keys - low])[::-1]
        rows = rows[np.lexsort((end[rows], -start[rows]))]
        row_of[keys[rows] - low] = rows  # the last assignment stays
    return row_of[np.clip(wanted, low, high) - low]


_DENSE = 4
"""Maximum span of ids per call for which a table with an entry per id is used."""


def _again(keys: Int64Array, window: Int64Array) -> bool:
    """Whether some key of one window recurs in another."""
    order = np.lexsort((window, keys))
    same = (np.diff(keys[order]) == 0) & (np.diff(window[order]) != 0)
    return bool((same & (keys[order][1:] != MISSING)).any())


def _keys(owners: Sequence[Int64Array], corr: Sequence[Int64Array]) -> tuple[Int64Array, ...]:
    """Make one number of (owner, correlation id); MISSING if either is not known."""
    distinct_owners = distinct_values(np.concatenate([distinct_values(each) for each in owners]))
    return tuple(
        np.where((owner != MISSING) & (number != MISSING), index | (number & 0xFFFFFFFFFF), MISSING)
        for owner, number in zip(owners, corr, strict=True)
        for index in [_places(distinct_owners, owner) << 40]
    )


def _places(distinct: Int64Array, values: Int64Array) -> Int64Array:
    """Find the indices of values among the distinct ones, which are sorted."""
    one = len(distinct) == 1
    return np.zeros(1, np.int64) if one else np.searchsorted(distinct, values)


def launch_bounds(records: Records) -> tuple[Int64Array, Int64Array]:
    """Start and end of the API call that launched each row; -1 if unknown."""
    launch = records.arrow("launch")
    index = launch.offsets.to_numpy()
    both = np.diff(index) == _BOUNDS
    if launch.null_count:
        both &= launch.is_valid().to_numpy(zero_copy_only=False)
    elif both.all():  # nearly always
        times = ints(launch.flatten())
        return times[::_BOUNDS].copy(), times[1::_BOUNDS].copy()
    begin, end = np.full((2, len(launch)), -1)
    rows = np.flatnonzero(both)
    times = ints(launch.values)
    begin[rows], end[rows] = times[index[rows]], times[index[rows] + 1]
    return begin, end


_BOUNDS = 2
"""Values of a launch: its start and its end."""


@dataclass(frozen=True)
class Chains:
    """For each row, the chosen ranges around it, outermost first.

    Those of row i are `member[offset[i] : offset[i + 1]]`.
    """

    offset: NDArray[np.int32]
    """Offsets of 32 bits, like those of Arrow's lists."""
    member: IntArray

    @cached_property
    def owner(self) -> NDArray[np.int32]:
        """The row of each member."""
        return np.repeat(np.arange(len(self.offset) - 1, dtype=np.int32), np.diff(self.offset))

    def filter(self, keep: NDArray[np.bool_]) -> Chains:
        """Keep some of the members."""
        if keep.all():
            return self
        return Chains(offsets(keep).take(self.offset), self.member.compress(keep))

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Mask of members that are the first of their row."""
        begins = np.zeros(len(self.member) + 1, bool)
        begins[self.offset] = True
        return begins[:-1]

    def lists(self, values: pa.Array) -> pa.ListArray:
        """The values of each row's members as a list column."""
        return pa.ListArray.from_arrays(pa.array(self.offset), values)


def offsets(counts: IntArray | NDArray[np.bool_]) -> NDArray[np.int32]:
    """Turn the lengths of lists into where each begins, and where the last ends."""
    offset = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offset[1:], dtype=np.int32)
    return offset


def chains(parent: IntArray, wanted: NDArray[np.bool_], leaf: IntArray, most: int) -> Chains:
    """Walk outwards from each leaf range and collect up to `most` wanted ranges."""
    above = nearest(parent, wanted)
    inside = np.flatnonzero(leaf != MISSING).astype(np.int32)  # rows are many
    current = leaf.take(inside).astype(above.dtype, copy=False)
    off = np.flatnonzero(~wanted.take(current))
    current[off] = above.take(current[off])
    rows: list[IntArray] = []
    members: list[IntArray] = []
    active = inside
    while len(active) and len(rows) < most:
        left = np.flatnonzero(current != MISSING)
        active, current = active.take(left), current.take(left)
        rows.append(active)
        members.append(current)
        current = above.take(current)
    return _assemble(len(leaf), rows, members)


def nearest(parent: IntArray, wanted: NDArray[np.bool_]) -> IntArray:
    """Find the nearest wanted ancestor of each range."""
    above = parent.copy()
    active = np.flatnonzero(above != MISSING)
    while len(active):
        active = active.take(np.flatnonzero(~wanted.take(above.take(active))))
        above[active] = above.take(above.take(active))
        active = active.take(np.flatnonzero(above.take(active) != MISSING))
    return above


def _assemble(count: int, rows: list[IntArray], members: list[IntArray]) -> Chains:
    lengths = np.zeros(count, np.int32)
    for active in rows:
        lengths[active] += 1
    offset = offsets(lengths)
    member = np.zeros(int(offset[-1]), np.int32)
    for step, (active, ranges) in enumerate(zip(rows, members, strict=True)):
        member[offset.take(active + 1) - (1 + step)] = ranges
    return Chains(offset, member)


def last(chain: Chains, wanted: NDArray[np.bool_] | None = None) -> Int64Array:
    """Find each row's innermost member that is wanted (a mask over ranges); MISSING if none."""
    innermost_range = np.full(len(chain.offset) - 1, MISSING)
    if wanted is None:
        some = np.flatnonzero(chain.offset[1:] > chain.offset[:-1])
        innermost_range[some] = chain.member[chain.offset[1:][some] - 1]
    else:
        indices = np.flatnonzero(wanted.take(chain.member))
        innermost_range[chain.owner[indices]] = chain.member[indices]  # the last assignment stays
    return innermost_range


def first(chain: Chains, wanted: NDArray[np.bool_] | None = None) -> Int64Array:
    """Find each row's outermost member that is wanted; MISSING if none."""
    outermost = np.full(len(chain.offset) - 1, MISSING)
    if wanted is None:
        some = np.flatnonzero(chain.offset[1:] > chain.offset[:-1])
        outermost[some] = chain.member[chain.offset[:-1][some]]
    else:
        indices = np.flatnonzero(wanted.take(chain.member))[::-1]
        outermost[chain.owner[indices]] = chain.member[indices]
    return outermost
