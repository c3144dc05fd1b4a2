"""The order of launches, kernels and waits of a capture, replayed with other times of kernels.

A kernel begins when its launch has reached the GPU, its stream is free, and the kernel of another
stream that it waited for has ended. A call that waits for the GPU returns when what it waited for
has ended; what the host does between its calls takes as long as recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.analysis.time.host_api import CALL_KINDS, COPY, SYNC
from pyprof.arrays import MISSING
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pyprof.analysis.time.host_api import Calls
    from pyprof.arrays import Int64Array, IntArray
    from pyprof.records.records import Records

_LONG_NS = 100_000
"""A long launching call; most return within some microseconds."""
_LATE_NS = 20_000
"""A kernel that begins so long after launch and stream allow has waited for another stream."""


class Waits(NamedTuple):
    """The calls that waited for the GPU."""

    at: Int64Array
    """For each, the index of the first kernel launched after it."""
    kernel: Int64Array
    """The index of the kernel whose end it waited for."""
    start_ns: Int64Array
    end_ns: Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What one process launched on the GPUs, in order, and when it waited for them."""

    row: Int64Array
    """Rows of the records."""
    stream: IntArray
    launch_ns: Int64Array
    start_ns: Int64Array
    end_ns: Int64Array
    awaits: Int64Array
    """Index of the kernel of another stream that each waited for; MISSING for none."""
    waits: Waits
    queued_ns: float
    """Usual time from a launch to its kernel's start on an idle stream."""
    gap_ns: float
    """Usual time between two kernels on a stream with more work queued."""


def recording(
    records: Records, launch: tuple[Int64Array, Int64Array], calls: Calls, pid: int
) -> Recording | None:
    """Return what a process recorded; None if the launch of a kernel is unknown."""
    ours = np.flatnonzero(records.numpy("pid") == pid)
    start, end = (records.numpy(name)[ours] for name in ("start", "end"))
    launched, returned = (bounds[ours] for bounds in launch)
    if not len(ours) or (launched < 0).any() or (end < start).any():
        return None
    # A call that loads code or waits hands the kernel over late.
    launched = np.where(returned - launched > _LONG_NS, np.minimum(returned, start), launched)
    order = np.lexsort((start, launched))
    ours, start, end, launched = ours[order], start[order], end[order], launched[order]
    _, stream = combinations(records.numpy("device")[ours], records.numpy("stream")[ours])
    free = _ended_before(stream, end)
    idle = free <= launched
    queued = float(np.median((start - launched)[idle])) if idle.any() else 0.0
    after = (start - free)[(free > launched + queued) & (start >= free)]
    gap = float(np.median(after)) if len(after) else 0.0
    late = start - np.maximum(launched + queued, free + gap) > _LATE_NS
    return Recording(
        row=ours,
        stream=stream,
        launch_ns=launched,
        start_ns=start,
        end_ns=end,
        awaits=_find_awaited(start, end, stream, late),
        waits=_waits(calls, pid, launched, end),
        queued_ns=queued,
        gap_ns=gap,
    )


def _ended_before(stream: IntArray, end: Int64Array) -> Int64Array:
    """Return when the previous kernel on the same stream had ended; 0 for the first."""
    order = np.argsort(stream, kind="stable")
    before = np.zeros(len(end), np.int64)
    same = stream[order][1:] == stream[order][:-1]
    before[order[1:][same]] = end[order[:-1][same]]
    return before


def _find_awaited(
    start: Int64Array, end: Int64Array, stream: IntArray, late: NDArray[np.bool_]
) -> Int64Array:
    """Find for each late kernel the last one of another stream that ended before it began."""
    last_ended = np.full(len(start), MISSING)
    by_end = np.argsort(end, kind="stable")
    ended = end[by_end]
    for index in np.flatnonzero(late):
        first, behind = np.searchsorted(ended, [start[index] - _LATE_NS, start[index] + 1])
        others = np.flatnonzero(stream[by_end[first:behind]] != stream[index])
        if len(others):
            last_ended[index] = by_end[first + others[-1]]
    return last_ended


def _waits(calls: Calls, pid: int, launched: Int64Array, end: Int64Array) -> Waits:
    """Find the calls that returned only once a kernel, or their own copy, had ended."""
    sync = np.isin(calls.kind_of_call, [CALL_KINDS.index(SYNC), CALL_KINDS.index(COPY)]) & (
        calls.pid == pid
    )
    begin, until = calls.start[sync], calls.end[sync]
    order = np.argsort(end, kind="stable")
    last = np.searchsorted(end[order], until, side="right") - 1
    index = np.where(last >= 0, order[np.maximum(last, 0)], MISSING)
    waited = (index >= 0) & (end[index] > begin) & (launched[index] <= until)
    begin, until, index = begin[waited], until[waited], index[waited]
    at = np.maximum(np.searchsorted(launched, begin, side="right"), index + 1)
    return Waits(at, index, begin, until)


def replayed(
    recorded: Recording, duration_ns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Return when each kernel starts and ends with these durations, by launch, in ns."""
    start, end = np.zeros(len(recorded.row)), np.zeros(len(recorded.row))
    free = [0.0] * (int(recorded.stream.max()) + 1)
    waits = _rows(*recorded.waits, recorded.end_ns[recorded.waits.kernel])
    kernels = _rows(recorded.stream, recorded.awaits, recorded.launch_ns, duration_ns)
    wait = next(waits, None)
    shift = 0.0
    for index, (queue, other, launch_ns, lasted_ns) in enumerate(kernels):
        while wait is not None and wait[0] <= index:
            _, awaited, began, returned, ended = wait
            until = max(began + shift, end[awaited]) + returned - max(began, ended)
            shift = until - returned
            wait = next(waits, None)
        begin = max(
            launch_ns + shift + recorded.queued_ns,
            free[queue] + recorded.gap_ns,
            end[other] if 0 <= other < index else 0.0,
        )
        start[index] = begin
        free[queue] = end[index] = begin + lasted_ns
    return start, end


def _rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns of one length, as Python numbers."""
    return zip(*(each.tolist() for each in columns), strict=True)
