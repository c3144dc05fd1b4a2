"""The windows of a capture: what was recorded each time until the profiler was paused.

A pause is recognised by the calls around it, cudaProfilerStop and a later cudaProfilerStart. A
process counts its windows from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

_START, _STOP = "^cu(?:da)?ProfilerStart", "^cu(?:da)?ProfilerStop"


@dataclass(frozen=True, slots=True)
class RecordingWindows:
    """When recording began again; false where it never did."""

    begun: Mapping[int, Int64Array]
    """The starts of all windows but the first, ns, rising, of each process that has several."""

    def __bool__(self) -> bool:
        return bool(self.begun)

    def at(self, pid: Int64Array, time: Int64Array) -> Int64Array:
        """Window of each instant; a pause counts to the window before it."""
        window = np.zeros(len(time), np.int64)
        for process, begun in self.begun.items():
            ours = pid == process
            window[ours] = np.searchsorted(begun, time[ours], side="right")
        return window

    def apart(self, pid: Int64Array, time: Int64Array) -> Int64Array:
        """One number for process and window of each instant; MISSING without a process."""
        most = 1 + max(map(len, self.begun.values()), default=0)
        return np.where(pid == MISSING, MISSING, pid * most + self.at(pid, time))


def processes(capture: Capture) -> Int64Array:
    """Process of each API call."""
    return ints(capture.threads.column("pid"))[ints(capture.calls.column("thread"))]


def recording_windows(capture: Capture) -> RecordingWindows:
    """Find the windows of each process.

    A pause in which some call was recorded is none: the tool recorded on, whatever the calls said.
    """
    started, stopped = (_named(capture.calls, pattern) for pattern in (_START, _STOP))
    if not started.any() or not stopped.any():
        return RecordingWindows({})
    pid = processes(capture)
    start, end = (ints(capture.calls.column(name)) for name in ("start", "end"))
    begun = {}
    for process in np.unique(pid[started]).tolist():
        ours = pid == process
        calls, again = np.sort(start[ours]), np.sort(start[ours & started])
        paused = np.sort(end[ours & stopped])
        paused = paused[: np.searchsorted(paused, again[-1])]  # a last stop ends it all
        until = again[np.searchsorted(again, paused)]
        recorded = np.searchsorted(calls, until) > np.searchsorted(calls, paused, side="right")
        if not recorded.all():
            begun[process] = np.unique(until[~recorded])
    return RecordingWindows(begun)


def _named(calls: pa.Table, pattern: str) -> NDArray[np.bool_]:
    if not calls.num_rows:
        return np.zeros(0, bool)
    names = calls.column("name").combine_chunks()
    matches = pc.match_substring_regex(names.dictionary, pattern).to_numpy(zero_copy_only=False)
    return np.asarray(
        np.append(matches, [False])[names.indices.fill_null(MISSING).to_numpy()], bool
    )


def of_rows(
    capture: Capture, activities: pa.Table, launch: Int64Array, windows: RecordingWindows
) -> Int64Array:
    """Window of each activity: the one in which it was launched, whenever it ran.

    Without its launch, that in which it ended: what is recorded without one was launched before.
    """
    called = np.append(ints(capture.calls.column("start")), MISSING)[launch]
    time = np.where(launch != MISSING, called, ints(activities.column("end")))
    return windows.at(ints(activities.column("pid")), time)
