"""Which API call launched each piece of GPU work, and which range that call was made in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import NONE, ints
from pyprof.parse.nesting import Nest, innermost
from pyprof.parse.windows import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.arrays import Ints
    from pyprof.parse.windows import Windows
    from pyprof.schema import Capture


def launches(capture: Capture, activities: pa.Table, windows: Windows) -> Ints:
    """Find the row of the API call that launched each activity; NONE where there is none.

    Correlation ids are unique within a process only, and within a window where CUPTI was closed
    between two. Where a runtime call and the driver call inside it share an id, the outer one is
    the launch. One call may launch much (a CUDA graph).
    """
    calls = capture.calls
    if not len(calls):
        return np.full(len(activities), NONE)
    start = ints(calls.column("start"))
    owners = [processes(capture), ints(activities.column("pid"))]
    corr = [ints(table.column("corr")) for table in (calls, activities)]
    ours, theirs = _keys(owners, corr)
    if windows and _again(ours, windows.at(owners[0], start)):
        times = start, ints(activities.column("end"))
        parts = [windows.apart(pid, time) for pid, time in zip(owners, times, strict=True)]
        ours, theirs = _keys(parts, corr)
    order = np.lexsort((-ints(calls.column("end")), start, ours))
    place = np.minimum(np.searchsorted(ours, theirs, sorter=order), len(ours) - 1)
    row = order[place]
    return np.where((ours[row] == theirs) & (theirs != NONE), row, NONE)


def _again(keys: Ints, window: Ints) -> bool:
    """Tell whether some key of one window comes again in another."""
    order = np.lexsort((window, keys))
    same = (np.diff(keys[order]) == 0) & (np.diff(window[order]) != 0)
    return bool((same & (keys[order][1:] != NONE)).any())


def _keys(owners: Sequence[Ints], corr: Sequence[Ints]) -> tuple[Ints, ...]:
    """Make one number of (owner, correlation id); NONE where either is not known."""
    known = np.unique(np.concatenate(owners))
    return tuple(
        np.where(
            (owner != NONE) & (number != NONE),
            (np.searchsorted(known, owner) << 40) | (number & 0xFFFFFFFFFF),
            NONE,
        )
        for owner, number in zip(owners, corr, strict=True)
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
