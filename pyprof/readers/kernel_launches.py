"""The API calls that launch GPU work, and the warning if none of it was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.arrays import Int64Array, IntArray, Mask

_KERNEL = (
    r"^(?:cuda|cu|hip)(?:Ext)?(?:Module)?Launch(?:Cooperative|Multi)?Kernel"
    r"|^cudaLaunch(?:_v\d+)?$|^cuLaunch(?:Grid(?:Async)?)?$|^hipLaunchByPtr"
)
"""Calls that launch a kernel; those without "Kernel" are from old versions of CUDA, and HIP's."""
GRAPH_LAUNCH = r"^(?:cuda|cu|hip)GraphLaunch"
PAUSE = r"^cu(?:da)?ProfilerStop|^roctxProfilerPause"
RESUME = r"^cu(?:da)?ProfilerStart|^roctxProfilerResume"
"""Calls by which a program pauses its profiler."""
_RUNS_NOTHING = (
    (r"StreamBeginCapture", r"StreamEndCapture"),  # a launch makes a node of a graph
    (PAUSE, RESUME),
)
"""Calls between which a launch has no kernel of its own, or none that is recorded."""

CAUSES = (
    "another profiler was attached (nsys, ncu, torch.profiler and DCGM exclude one another), the "
    "profiler's buffers overflowed, the launches failed, or the file was filtered"
)
"""Why launches may have no kernel in a capture, as part of a sentence."""


def kernel_launches(calls: pa.Table, process: IntArray, pattern: str = _KERNEL) -> Int64Array:
    """Return the rows of calls whose kernel, or what else `pattern` launches, is recorded.

    `process` is that of each call. A launch during the capture of a graph has no kernel.
    """
    launching = named(calls, pattern) & (ints(calls.column("corr")) != MISSING)
    for begin, end in _RUNS_NOTHING:
        if launching.any():
            launching &= ~_mark_between(calls, process, begin, end)
    return np.flatnonzero(launching)


def none_recorded(calls: pa.Table, process: IntArray) -> str | None:
    """Describe a capture that has launches but no kernel; None if it has no launches."""
    rows = kernel_launches(calls, process, f"{_KERNEL}|{GRAPH_LAUNCH}")
    count = len(np.unique(outermost(calls, rows)))
    if not count:
        return None
    return f"kernels were launched ({count:,}), but none was recorded: {CAUSES}; capture again"


def outermost(calls: pa.Table, rows: Int64Array) -> Int64Array:
    """Number launches so that those inside one another, on one thread, share a number.

    The runtime's call contains the driver's; the kernel has the id of one of them.
    """
    thread, start, end = (ints(calls.column(name))[rows] for name in ("thread", "start", "end"))
    order = np.lexsort((-end, start, thread))
    number = np.empty(len(rows), np.int64)
    first = 0
    for part in np.split(order, np.flatnonzero(np.diff(thread[order])) + 1):
        until = np.maximum.accumulate(end[part])
        begins = np.ones(len(part), bool)
        begins[1:] = start[part][1:] >= until[:-1]
        number[part] = first + np.cumsum(begins)
        first += len(part)
    return number


def _mark_between(calls: pa.Table, process: IntArray, begin: str, end: str) -> Mask:
    """Mark the calls of a process that lie between two calls; either may be outside the file."""
    begins, ends = named(calls, begin), named(calls, end)
    inside = np.zeros(len(calls), bool)
    start = ints(calls.column("start"))
    for number in np.unique(process[begins | ends]).tolist():
        ours = process == number
        bounds = np.flatnonzero(ours & (begins | ends))
        bounds = bounds[np.argsort(start[bounds], kind="stable")]
        depth = np.concatenate([[0], np.cumsum(np.where(begins[bounds], 1, -1))])
        depth -= depth.min()  # an end without a begin: the begin precedes the first call
        rows = np.flatnonzero(ours)
        inside[rows] = depth[np.searchsorted(start[bounds], start[rows], side="right")] > 0
    return inside


def named(calls: pa.Table, pattern: str) -> Mask:
    """Mark the calls whose name matches."""
    names = calls.column("name").combine_chunks()
    matches = pc.fill_null(pc.match_substring_regex(names.dictionary, pattern), fill_value=False)
    return np.append(np.asarray(matches, bool), [False])[ints(names.indices)]
