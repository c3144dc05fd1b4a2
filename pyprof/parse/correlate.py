"""Which API call launched each piece of GPU work, and which range that call was made in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.parse.nesting import NONE, Nest, innermost

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.parse.nesting import Ints
    from pyprof.schema import Capture


def ints(column: pa.ChunkedArray | pa.Array, absent: int = NONE) -> Ints:
    """Give an integer column as int64, with `absent` for null."""
    if column.null_count:
        column = pc.fill_null(column, absent)
    return np.asarray(column.to_numpy()).astype(np.int64, copy=False)


def launches(capture: Capture, activities: pa.Table) -> Ints:
    """Find the row of the API call that launched each activity; NONE where there is none.

    Correlation ids are unique within a process only. Where a runtime call and the driver call
    inside it share an id, the outer one is the launch. One call may launch much (a CUDA graph).
    """
    calls = capture.calls
    if not len(calls):
        return np.full(len(activities), NONE)
    pids = ints(capture.threads.column("pid"))[ints(calls.column("thread"))]
    ours, theirs = _keys(
        (pids, ints(calls.column("corr"))),
        (ints(activities.column("pid")), ints(activities.column("corr"))),
    )
    order = np.lexsort((-ints(calls.column("end")), ints(calls.column("start")), ours))
    place = np.minimum(np.searchsorted(ours, theirs, sorter=order), len(ours) - 1)
    row = order[place]
    return np.where((ours[row] == theirs) & (theirs != NONE), row, NONE)


def _keys(*columns: tuple[Ints, Ints]) -> tuple[Ints, ...]:
    """Make one number of (process, correlation id); NONE where either is not known."""
    known = np.unique(np.concatenate([pid for pid, _ in columns]))
    return tuple(
        np.where(
            (pid != NONE) & (corr != NONE),
            (np.searchsorted(known, pid) << 40) | (corr & 0xFFFFFFFFFF),
            NONE,
        )
        for pid, corr in columns
    )


def ranges_of(capture: Capture, ranges: Nest, launch: Ints) -> Ints:
    """Find the innermost range around each launch; NONE where there is no launch or no range."""
    found = np.full(len(launch), NONE)
    known = np.flatnonzero(launch != NONE)
    row = launch[known]
    thread, start, end = (
        ints(capture.calls.column(name))[row] for name in ("thread", "start", "end")
    )
    found[known] = innermost(ranges, thread, start, end)
    return found
