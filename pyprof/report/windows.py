"""When a profiler was paused: from one window of a capture to the next nothing was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.report.intervals import EMPTY, Intervals, union_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.schema import Capture

    Ints = NDArray[np.int64]

_START, _STOP = "^cu(?:da)?ProfilerStart", "^cu(?:da)?ProfilerStop"


def pauses(capture: Capture | None, pid: int) -> Intervals:
    """Find when a process had stopped the profiler and not yet started it again.

    A pause in which some call was recorded is none: the tool recorded on, whatever it was told.
    """
    if capture is None or not capture.calls.num_rows:
        return EMPTY
    started, stopped = (_matching(capture, pattern) for pattern in (_START, _STOP))
    if not started.any() or not stopped.any():
        return EMPTY
    ours = _ints(capture.threads, "pid")[_ints(capture.calls, "thread")] == pid
    start, end = _ints(capture.calls, "start"), _ints(capture.calls, "end")
    again = np.sort(start[ours & started])
    calls = np.sort(start[ours])
    pause = np.sort(end[ours & stopped])
    pause = pause[: np.searchsorted(pause, again[-1:].max(initial=0))]  # a last stop ends it all
    until = again[np.searchsorted(again, pause)]
    recorded = np.searchsorted(calls, until) > np.searchsorted(calls, pause, side="right")
    return union_of(pause[~recorded], until[~recorded])


def _matching(capture: Capture, pattern: str) -> NDArray[np.bool_]:
    names = capture.calls.column("name").combine_chunks()
    known = pc.match_substring_regex(names.dictionary, pattern).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(known, [False])[names.indices.fill_null(-1).to_numpy()], bool)


def _ints(table: pa.Table, name: str) -> Ints:
    return np.asarray(table.column(name)).astype(np.int64)
