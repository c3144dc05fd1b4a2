"""The recording window and the serving framework's step that each activity belongs to.

A window is what was recorded without a pause of the profiler. A pause shows as a call of
cudaProfilerStop and a later one of cudaProfilerStart, or of ROCTx's equivalents; or, without these,
as numbers that torch.profiler's steps skip. A process counts its windows from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints, latest_before
from pyprof.marker.serving_steps import states_requests
from pyprof.readers.kernel_launches import PAUSE, RESUME, named
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True)
class RecordingWindows:
    """When recording resumed after each pause."""

    begun: Mapping[int, Int64Array]
    """Per process with several windows: the starts of all but the first, ns, ascending."""

    def at(self, pid: Int64Array, time: Int64Array) -> Int64Array:
        """Window of each instant; a pause counts to the window before it."""
        window = np.zeros(len(time), np.int64)
        for process, begun in self.begun.items():
            ours = pid == process
            window[ours] = np.searchsorted(begun, time[ours], side="right")
        return window

    def keys_of(self, pid: Int64Array, time: Int64Array) -> Int64Array:
        """One number for process and window of each instant; MISSING without a process."""
        most = 1 + max(map(len, self.begun.values()), default=0)
        return np.where(pid == MISSING, MISSING, pid * most + self.at(pid, time))


def processes(capture: Capture) -> Int64Array:
    """Process of each API call."""
    return ints(capture.threads.column("pid"))[ints(capture.calls.column("thread"))]


def recording_windows(capture: Capture) -> RecordingWindows:
    """Find the windows of each process.

    A pause in which a call was recorded does not count: the tool went on recording in spite of the
    calls to stop.
    """
    started, stopped = (named(capture.calls, pattern) for pattern in (RESUME, PAUSE))
    if not started.any() or not stopped.any():
        return RecordingWindows(_after_skipped_steps(capture))
    pid = processes(capture)
    start, end = (ints(capture.calls.column(name)) for name in ("start", "end"))
    begun = {}
    for process in np.unique(pid[started]).tolist():
        ours = pid == process
        calls, again = np.sort(start[ours]), np.sort(start[ours & started])
        paused = np.sort(end[ours & stopped])
        paused = paused[: np.searchsorted(paused, again[-1])]  # a stop without a later start
        until = again[np.searchsorted(again, paused)]
        recorded = np.searchsorted(calls, until) > np.searchsorted(calls, paused, side="right")
        if not recorded.all():
            begun[process] = np.unique(until[~recorded])
    return RecordingWindows(begun)


def _after_skipped_steps(capture: Capture) -> dict[int, Int64Array]:
    """Find the steps of each process before which torch.profiler's schedule left some out.

    Scripts merge the traces that a schedule with `repeat` writes. What was launched in between, or
    a step of another thread that had not ended, was recorded all the same.
    """
    text = capture.ranges.column("text").combine_chunks()
    matches = pc.match_substring_regex(text.dictionary, r"^ProfilerStep#\d{1,9}$")
    steps = np.flatnonzero(pc.fill_null(matches, fill_value=False))
    rows = np.flatnonzero(pc.is_in(text.indices, pa.array(steps, text.indices.type)))
    if not len(rows):
        return {}
    rows = rows[np.argsort(ints(capture.ranges.column("start"))[rows], kind="stable")]
    names = text.take(pa.array(rows)).to_pylist()
    number = np.array([int(name.partition("#")[2]) for name in names], np.int64)
    start, end, thread = (
        ints(capture.ranges.column(name))[rows] for name in ("start", "end", "thread")
    )
    pid = ints(capture.threads.column("pid"))[thread]
    launching = named(capture.calls, "Launch")
    launcher, launched = processes(capture), ints(capture.calls.column("start"))
    begun: dict[int, Int64Array] = {}
    for process in np.unique(pid).tolist():
        ours = pid == process
        paused, until = np.maximum.accumulate(end[ours])[:-1], start[ours][1:]
        launches = np.sort(launched[launching & (launcher == process)])
        skipped = (np.diff(number[ours]) > 1) & (paused <= until)
        skipped &= np.searchsorted(launches, paused) == np.searchsorted(launches, until)
        if skipped.any():
            begun[process] = np.unique(until[skipped])
    return begun


def of_rows(
    capture: Capture, activities: pa.Table, launch: Int64Array, windows: RecordingWindows
) -> Int64Array:
    """Window of each activity: the one in which it was launched, whenever it ran.

    If its launch was not recorded, the one in which it ended.
    """
    called = np.append(ints(capture.calls.column("start")), MISSING)[launch]
    time = np.where(launch != MISSING, called, ints(activities.column("end")))
    return windows.at(ints(activities.column("pid")), time)


def serving_step_of_rows(
    capture: Capture, activities: pa.Table, launch: Int64Array
) -> DictionaryColumn | None:
    """Text of each row's step, null for none; None if the capture has no such range.

    It is the step that its process had begun last when the row was launched, and had not ended.
    """
    text = capture.ranges.column("text").combine_chunks()
    names = text.dictionary.to_pylist()
    states = np.array([*(states_requests(name or "") for name in names), False])
    code = text.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(states[code])
    if not len(rows) or not len(activities):
        return None
    pid = ints(capture.threads.column("pid"))[ints(capture.ranges.column("thread"))[rows]]
    start, end = (ints(capture.ranges.column(name))[rows] for name in ("start", "end"))
    begun = np.append(ints(capture.calls.column("start")), MISSING)[launch]
    # the last range that began before each launch, if it contains that
    last = latest_before(pid, start, ints(activities.column("pid")), begun)
    holds = (last != MISSING) & ((end[last] == MISSING) | (begun <= end[last]))
    step_of = np.where(holds & (launch != MISSING), code[rows[last]], MISSING)
    used, place = np.unique(step_of, return_inverse=True)
    index = place - int(used[0] == MISSING)
    return DictionaryColumn(index, [names[at] for at in used.tolist() if at != MISSING])
