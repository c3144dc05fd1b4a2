"""Time of a device divided among what runs on it at once, so that parts add up to its busy time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.parse.ranges.nesting import by_value

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array
    from pyprof.prof.table import Table


def shared_ns(table: Table) -> Floats:
    """Each row's part of its device's time, ns; its whole duration if no starts are known."""
    time = table.duration_ns.astype(np.float64)
    if "start" not in table.records.columns:
        return time
    start, end, device = (table.records.numpy(name) for name in ("start", "end", "device"))
    timed = np.flatnonzero(table.timed & (start >= 0) & (end > start))
    for _, places in by_value(device[timed]):
        rows = timed[places]
        time[rows] = split_evenly(start[rows], end[rows])
    return time


def split_evenly(start: Int64Array, end: Int64Array) -> Floats:
    """Divide each instant evenly among the intervals that hold it."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    running = np.cumsum(np.where(order < len(start), 1, -1))[:-1]
    parts = np.where(running > 0, np.diff(times[order]) / np.maximum(running, 1), 0.0)
    passed = np.empty(len(times))
    passed[order] = np.append([0.0], np.cumsum(parts))
    return passed[len(start) :] - passed[: len(start)]
