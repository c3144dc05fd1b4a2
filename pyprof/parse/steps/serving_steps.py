"""The step of a serving framework that each activity belongs to, by the range around its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING, ints
from pyprof.marker.batch import states_requests
from pyprof.parse.ranges.texts import answers
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture


def of_rows(capture: Capture, activities: pa.Table, launch: Int64Array) -> DictionaryColumn | None:
    """Text of each row's step, null for none; None if the capture has no such range.

    It is the step that its process had begun last when the row was launched, and had not ended.
    """
    text = capture.ranges.column("text").combine_chunks()
    names = text.dictionary.to_pylist()
    states = np.array([*answers([name or "" for name in names], states_requests), False])
    code = text.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(states[code])
    if not len(rows):
        return None
    pid = ints(capture.threads.column("pid"))[ints(capture.ranges.column("thread"))[rows]]
    start, end = (ints(capture.ranges.column(name))[rows] for name in ("start", "end"))
    begun = np.append(ints(capture.calls.column("start")), MISSING)[launch]
    process = ints(activities.column("pid"))
    step_of = np.full(len(process), MISSING)
    for one in np.unique(pid).tolist():
        ours, theirs = np.flatnonzero(pid == one), (process == one) & (launch != MISSING)
        ours = ours[np.argsort(start[ours], kind="stable")]
        step_of[theirs] = _within(begun[theirs], start[ours], end[ours], code[rows[ours]])
    used, place = np.unique(step_of, return_inverse=True)
    index = place - int(used[0] == MISSING)
    return DictionaryColumn(index, [names[at] for at in used.tolist() if at != MISSING])


def _within(time: Int64Array, start: Int64Array, end: Int64Array, code: Int64Array) -> Int64Array:
    """Code of the last range that began before each instant and contains it; else MISSING."""
    last = np.searchsorted(start, time, side="right") - 1
    holds: Mask = (last >= 0) & ((end[last] == MISSING) | (time <= end[last]))
    return np.where(holds, code[last], MISSING)
