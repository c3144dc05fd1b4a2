"""Which API call launched each piece of GPU work, and the chain of op calls around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, ints, nearest
from pyprof.parse.steps.profiler_windows import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
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
    if windows.begun and _recurs(ours, windows.at(owners[0], start)):
        times = start, ints(activities.column("end"))
        parts = [windows.keys_of(pid, time) for pid, time in zip(owners, times, strict=True)]
        ours, theirs = _keys(parts, corr)
    order = np.lexsort((-ints(calls.column("end")), start, ours))  # the outer one comes first
    index = np.minimum(np.searchsorted(ours, theirs, sorter=order), len(ours) - 1)
    row = order[index]
    return np.where((ours[row] == theirs) & (theirs != MISSING), row, MISSING)


def _recurs(keys: Int64Array, window: Int64Array) -> bool:
    """Whether some key of one window recurs in another."""
    order = np.lexsort((window, keys))
    same = (np.diff(keys[order]) == 0) & (np.diff(window[order]) != 0)
    return bool((same & (keys[order][1:] != MISSING)).any())


def _keys(owners: Sequence[Int64Array], corr: Sequence[Int64Array]) -> list[Int64Array]:
    """Make one number of (owner, correlation id); MISSING if either is not known."""
    distinct_owners = np.unique(np.concatenate([np.unique(each) for each in owners]))
    keys = []
    for owner, number in zip(owners, corr, strict=True):
        index = np.searchsorted(distinct_owners, owner) << 40
        known = (owner != MISSING) & (number != MISSING)
        keys.append(np.where(known, index | (number & 0xFFFFFFFFFF), MISSING))
    return keys


def launch_bounds(records: Records) -> tuple[Int64Array, Int64Array]:
    """Start and end of the API call that launched each row; -1 if unknown."""
    launch = records.arrow("launch")
    begin, end = np.full((2, len(launch)), MISSING)
    rows = np.flatnonzero(launch.is_valid())
    begin[rows], end[rows] = ints(launch.flatten()).reshape(-1, 2).T
    return begin, end


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

    def filter(self, keep: Mask) -> Chains:
        """Keep some of the members."""
        if keep.all():
            return self
        return Chains(offsets(keep).take(self.offset), self.member.compress(keep))

    def within(self, ranges: Mask) -> Chains:
        """Keep the members that a mask over all ranges marks."""
        return self.filter(ranges.take(self.member))

    @property
    def begins(self) -> Mask:
        """Mask of members that are the first of their row."""
        begins = np.zeros(len(self.member) + 1, bool)
        begins[self.offset] = True
        return begins[:-1]

    def lists(self, values: pa.Array) -> pa.ListArray:
        """The values of each row's members as a list column."""
        return pa.ListArray.from_arrays(pa.array(self.offset), values)


def offsets(counts: IntArray | Mask) -> NDArray[np.int32]:
    """Turn the lengths of lists into where each begins, and where the last ends."""
    offset = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offset[1:], dtype=np.int32)
    return offset


def chains(parent: IntArray, wanted: Mask, leaf: IntArray, most: int) -> Chains:
    """Walk outwards from each leaf range and collect up to `most` wanted ranges."""
    above = nearest(parent, wanted)
    active: IntArray = np.flatnonzero(leaf != MISSING).astype(np.int32)  # rows are many
    current = leaf.take(active).astype(above.dtype, copy=False)
    off = np.flatnonzero(~wanted.take(current))
    current[off] = above.take(current[off])
    rows: list[IntArray] = []
    members: list[IntArray] = []
    while len(active) and len(rows) < most:
        left = np.flatnonzero(current != MISSING)
        active, current = active.take(left), current.take(left)
        rows.append(active)
        members.append(current)
        current = above.take(current)
    lengths = np.zeros(len(leaf), np.int32)
    for inside in rows:
        lengths[inside] += 1
    offset = offsets(lengths)
    member = np.zeros(int(offset[-1]), np.int32)
    for step, (inside, ranges) in enumerate(zip(rows, members, strict=True)):
        member[offset.take(inside + 1) - (1 + step)] = ranges
    return Chains(offset, member)


def last(chain: Chains) -> Int64Array:
    """Find each row's innermost member; MISSING if there is none."""
    return _member_of_each(chain, chain.offset[1:] - 1)


def first(chain: Chains) -> Int64Array:
    """Find each row's outermost member; MISSING if there is none."""
    return _member_of_each(chain, chain.offset[:-1])


def _member_of_each(chain: Chains, index: IntArray) -> Int64Array:
    members = np.full(len(index), MISSING)
    some = np.flatnonzero(np.diff(chain.offset))
    members[some] = chain.member[index[some]]
    return members
