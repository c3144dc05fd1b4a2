"""Checks the links from work to ops: correlation ids, clocks, bounds of ranges.

A kernel begins after the call that launched it, which is one that launches kernels; a range
begins and ends between calls of its thread, never during one. Links that contradict this are
left out, and the user is warned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, set_column
from pyprof.parse import launches as correlate
from pyprof.parse.ranges.nesting import bounds_of, by_start
from pyprof.parse.steps.profiler_windows import processes
from pyprof.readers.kernel_launches import (
    CAUSES,
    kernel_launches,
    named,
    none_recorded,
    outermost,
)
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.parse.ranges import texts
    from pyprof.parse.ranges.nesting import Nest
    from pyprof.parse.steps.profiler_windows import RecordingWindows
    from pyprof.schema import Capture


_MIN_COUNT = 3
"""Fewer than this may be chance."""
_MAX_EARLY, _EARLY_NS = 0.05, 2_000
"""The share of kernels that begin before their launch, by more than rounding explains."""
_REPAIRED = 0.01
"""The share of kernels that may still begin early with the next or previous correlation id."""
_CLOCK = 0.5
"""If at least this share is early by about as much as the earliest kernel, clocks may differ."""
_MAX_LOST = 0.02
"""The share of kernels without a call, after others of their stream with one, to warn about."""
_MAX_DURING = 0.02
"""The share of calls during which a range begins, above which clocks differ."""
_LONG_CALL_NS = 10_000
"""Bounds of ranges are looked for within calls longer than this."""
_BOUNDS_SHARE = 0.001
"""The share of begins and ends of ranges during long calls, above which clocks differ.

With equal clocks there are none: in 18 real captures 0 of 400,000, and at least 0.3 % in each of
them when its ranges are shifted by a millisecond or more, onto calls that are so long.
"""
_ROUNDING_NS = 2_000
"""Old traces round the start and the length of a range or call to a microsecond each."""
_LOOKED_AT = 5_000
"""Number of calls that are checked, approximately: more would show no more."""
_MAX_SHIFTED = 0.1
"""The share of work with a call of the wrong kind that shows that ids are shifted."""
_MAX_DISORDERED = 0.01
"""The share of rows out of launch order from which on it cannot be chance."""
_OTHER_CALLS = (
    r"^cu(?:da)?(?:Memcpy|Memset|Malloc|MemAlloc|MemFree|Free|Stream|Event|Device|Ctx|Module|Get)"
)
"""Calls that launch no kernel. (AMD's copies do.)"""
_KERNEL_CALLS = r"^cu(?:da)?LaunchKernel"
"""Calls that launch only kernels. (AMD's fills are kernels.)"""
_API_CALLS, _SEVERAL_KERNELS = r"^_*(?:cu|hip)", "Graph|Memcpy|Memset|Multi"
"""Calls that launch at most one kernel each, unless they match the second."""
_IN_ORDER = r"^cu(?:da)?(?:LaunchKernel|Memcpy|Memset)"
"""Calls whose work runs on its stream in their order."""


def launches(
    capture: Capture, activities: pa.Table, windows: RecordingWindows
) -> tuple[Int64Array, tuple[str, ...]]:
    """Find the row of the call that launched each activity; also return warnings about these links.

    MISSING if unknown, and for all activities if correlation ids are those of other calls.
    """
    launch = correlate.launches(capture, activities, windows)
    lead = _lead(capture, activities, launch)
    if wrong := _warn_shifted(capture, activities, windows, launch, lead):
        return np.full(len(launch), MISSING), (wrong,)
    lost = _warn_lost(capture, activities, launch)
    return launch, (*_warn_early(lead), *lost, *_kernels_lost(capture, activities, launch))


def _warn_shifted(
    capture: Capture,
    activities: pa.Table,
    windows: RecordingWindows,
    launch: Int64Array,
    lead: Int64Array,
) -> str | None:
    """Return the warning that correlation ids are those of other calls; None without evidence."""
    kind = ints(activities.column("kind"))
    launching = _match_names(capture, "Launch")
    by_other = (_match_names(capture, _OTHER_CALLS) & ~launching)[launch]
    kernels = int((by_other & (kind == schema.KERNEL)).sum())
    moves = np.isin(kind, (schema.MEMCPY, schema.MEMSET)) & (launch != MISSING)
    copies = int((_match_names(capture, _KERNEL_CALLS)[launch] & moves).sum())
    launches_one = _match_names(capture, _API_CALLS) & ~_match_names(capture, _SEVERAL_KERNELS)
    single = launch[launches_one[launch] & (kind == schema.KERNEL)]
    shared = len(single) - len(np.unique(single))
    if launching.any() and kernels > 1 and kernels >= _MAX_SHIFTED * by_other.sum():
        why = f"{kernels:,} kernels have the id of a call that launches nothing"
    elif copies >= _MIN_COUNT and copies >= _MAX_SHIFTED * moves.sum():
        why = f"{copies:,} copies and fills have the id of a call that launches kernels"
    elif shared >= _MIN_COUNT and shared >= _MAX_SHIFTED * len(single):
        why = f"{shared:,} kernels have the id of a call that launched another"
    elif count := _out_of_order(capture, activities, launch):
        why = f"{count:,} rows began before others of their stream that were launched earlier"
    elif _is_explained_by_shift(capture, activities, windows, lead):
        why = "kernels begin before their launch, but after the call with the next id"
    else:
        return None
    return (
        f"correlation ids are inconsistent ({why}): work is tied to no call, op or line, "
        "rather than to wrong ones; export or capture again"
    )


def _match_names(capture: Capture, pattern: str) -> Mask:
    """Mark the calls whose name matches; one more entry, for MISSING, is False."""
    return np.append(named(capture.calls, pattern), [False])


def _out_of_order(capture: Capture, activities: pa.Table, launch: Int64Array) -> int:
    """Count work that began on its stream before work of an earlier call; 0 if there is little.

    Work inside a graph has no order, and AMD's queues have several streams.
    """
    rows = np.flatnonzero(_match_names(capture, _IN_ORDER)[launch])
    stream = _streams(activities, rows)
    start = ints(activities.column("start"), _NEVER)[rows]
    order = by_start(stream, start)
    stream, start, call = stream[order], start[order], launch[rows[order]]
    same = (stream[1:] == stream[:-1]) & (start[1:] > start[:-1])
    begun, ended = (ints(capture.calls.column(name)) for name in ("start", "end"))
    count = int((same & (begun[call[:-1]] > ended[call[1:]])).sum())
    return count if count >= _MIN_COUNT and count >= _MAX_DISORDERED * same.sum() else 0


def _streams(activities: pa.Table, rows: Int64Array) -> IntArray:
    names = ("pid", "device", "stream")
    return number_combinations(*(ints(activities.column(name))[rows] for name in names))


def _lead(capture: Capture, activities: pa.Table, launch: Int64Array) -> Int64Array:
    """Return by how many ns work begins before its launch, for work with both times."""
    start = ints(activities.column("start"), _NEVER)
    both = (launch != MISSING) & (start != _NEVER)
    both &= ints(activities.column("kind")) != schema.CPU
    return np.asarray(ints(capture.calls.column("start"))[launch[both]] - start[both])


_NEVER = -(2**63)


def is_clock_skew(lead: Int64Array) -> bool:
    """Whether too much work begins before its launch, by `lead` ns, to be chance."""
    early = int((lead > _EARLY_NS).sum())
    return early >= _MIN_COUNT and early >= _MAX_EARLY * len(lead)


def _is_explained_by_shift(
    capture: Capture, activities: pa.Table, windows: RecordingWindows, lead: Int64Array
) -> bool:
    """Whether neighbouring ids, rather than a difference of clocks, explain early kernels.

    If clocks differ, all kernels that did not wait are early by about the same time.
    """
    if not is_clock_skew(lead):
        return False
    early = lead[lead > _EARLY_NS]
    if (early > 0.8 * early.max()).mean() >= _CLOCK:
        return False
    for by in (-1, 1):
        others = set_column(activities, "corr", pc.add(activities.column("corr"), by))
        neighbour = _lead(capture, others, correlate.launches(capture, others, windows))
        early_count = (neighbour > _EARLY_NS).sum()
        # the first or the last id has no neighbour
        if len(neighbour) >= len(lead) - 1 and early_count <= _REPAIRED * len(neighbour):
            return True
    return False


def _warn_early(lead: Int64Array) -> Iterator[str]:
    if is_clock_skew(lead):
        count = int((lead > _EARLY_NS).sum())
        yield (
            f"{count:,} of {len(lead):,} kernels and copies begin before the call that launched "
            f"them, by up to {int(lead.max()) / 1e6:,.3g} ms: either the clocks of CPU and GPU "
            "differ, or correlation ids are those of other calls, in which case ops and lines are "
            "wrong, too; capture again"
        )


def _warn_lost(capture: Capture, activities: pa.Table, launch: Int64Array) -> Iterator[str]:
    """Warn of kernels without a call that were launched while calls were recorded.

    A stream keeps the order of launches: after a kernel with a call, calls of others must be
    recorded, too.
    """
    if any("no launch" in text for text in capture.warnings):
        return
    kernel = ints(activities.column("kind")) == schema.KERNEL
    without = kernel & (launch == MISSING)
    count = int(without.sum())
    if count < _MIN_COUNT or not len(capture.ranges):
        return
    if count == kernel.sum():
        yield (
            f"none of {count:,} kernels has the correlation id of an API call in this capture, so "
            "they have no op; capture CUDA's API, too (nsys profile -t cuda,nvtx), or export again"
        )
        return
    rows = np.flatnonzero(kernel)  # in order of start
    stream = _streams(activities, rows)
    first = np.full(int(stream.max()) + 1, len(rows))
    called = np.flatnonzero(~without[rows])
    np.minimum.at(first, stream[called], called)
    behind = np.arange(len(rows)) > first[stream]
    count = int((behind & without[rows]).sum())
    if count >= max(_MIN_COUNT, _MAX_LOST * kernel.sum()):
        yield (
            f"{count:,} of {int(kernel.sum()):,} kernels have no API call, although calls were "
            "recorded at that time: records were lost, and these kernels have no op; capture again"
        )


def _kernels_lost(capture: Capture, activities: pa.Table, launch: Int64Array) -> Iterator[str]:
    """Warn about launches whose kernels are missing although later kernels were recorded.

    Work launched before the end of the recording may run after it.
    """
    kind = ints(activities.column("kind"))
    kernel = np.isin(kind, (schema.KERNEL, schema.GRAPH))
    if not len(capture.calls) or capture.is_truncated:
        return
    pid = processes(capture)
    if not kernel.any():
        if not (kind == schema.CPU).any() and (all_lost := none_recorded(capture.calls, pid)):
            yield all_lost
        return
    if not (kernel & (launch != MISSING)).any():
        return
    rows = kernel_launches(capture.calls, pid)
    ran = np.zeros(len(capture.calls) + 1, bool)
    ran[launch] = True
    if ran[rows].all():  # nearly always
        return
    start = ints(capture.calls.column("start"))
    number = outermost(capture.calls, rows)
    order = np.lexsort((~ran[rows], number))  # of nested launches, first one with its kernel
    first = order[np.flatnonzero(np.diff(number[order], prepend=MISSING))]
    rows = rows[first]
    begin, end = _find_recorded_bounds(activities, launch, kernel, pid, start)
    low = np.array([begin.get(process, _INT64_MAX) for process in pid[rows].tolist()], np.int64)
    high = np.array([end.get(process, _NEVER) for process in pid[rows].tolist()], np.int64)
    within = rows[(start[rows] > low) & (start[rows] < high)]
    count = int((~ran[within]).sum())
    if count >= _MIN_COUNT:
        yield (
            f"{count:,} of {len(within):,} launches have no kernel in the capture, although "
            f"later kernels were recorded: {CAUSES}; times and totals lack these kernels, and the "
            "GPU seems idle while they ran"
        )


def _find_recorded_bounds(
    activities: pa.Table, launch: Int64Array, kernel: Mask, pid: Int64Array, start: Int64Array
) -> tuple[dict[int, int], dict[int, int]]:
    """Find the bounds, per process, between which the kernel of every launch must be recorded.

    From the first launch with a kernel to the last one; where a stream was behind when the
    recording ended, only to the last one of that stream.
    """
    rows = np.flatnonzero(kernel & (launch != MISSING))
    called, process = start[launch[rows]], pid[launch[rows]]
    ended = ints(activities.column("end"))[rows]
    stream = _streams(activities, rows)
    begin, end = {}, {}
    for number in np.unique(process).tolist():
        ours = process == number
        last = called[ours].max()
        begin[number], end[number] = int(called[ours].min()), int(last)
        for each in np.unique(stream[ours]).tolist():
            on_stream = stream == each
            if ended[on_stream].max() >= last:
                end[number] = min(end[number], int(called[on_stream].max()))
    return begin, end


_INT64_MAX = 2**63 - 1


def ranges_of(
    activities: pa.Table, nest: Nest, ops: Mask, site: LaunchSites
) -> tuple[Int64Array, tuple[str, ...]]:
    """Find the innermost range around each row's site; also return warnings about these links.

    `ops` marks the ranges that name an op. MISSING without a range, and for all rows if ranges and
    calls are on different clocks.
    """
    # The call of an op on the CPU is the op itself, inside which others begin and end.
    on_gpu = ints(activities.column("kind")) != schema.CPU
    launched = np.flatnonzero(on_gpu & (site.row != MISSING))
    row = np.unique(site.row[launched[:: len(launched) // _LOOKED_AT + 1]])
    thread, start, end = site.thread[row], site.start[row], site.end[row]
    during = ""
    count = int(_mark_during(nest, thread, start, end).sum())
    if count >= _MIN_COUNT and count >= _MAX_DURING * len(row):
        during = (
            f"begin or end during API calls of their own thread ({count:,} of {len(row):,} checked)"
        )
    elif len(row) and (count := _bounds_during_long_calls(nest, site)):
        during = (
            "begin or end during API calls of their own thread "
            f"({count:,} of {2 * len(nest.start):,} begins and ends)"
        )
    if during:
        doubt = (
            f"ranges {during}, which is impossible: they are on another clock, so work is tied to "
            "no op or line, rather than to wrong ones; capture again"
        )
        return np.full(len(site.row), MISSING), (doubt,)
    leaf = site.around(nest)
    no_op = None if (leaf != MISSING).any() else _warn_unlinked(nest, ops, thread, start)
    return leaf, () if no_op is None else (no_op,)


def _mark_during(nest: Nest, thread: IntArray, start: Int64Array, end: Int64Array) -> Mask:
    """Mark the calls during which a range of their thread begins, or the last one begun ends."""
    during = np.zeros(len(thread), bool)
    for number in np.unique(thread).tolist():
        calls = np.flatnonzero(thread == number)
        first, last = bounds_of(nest.thread, number)
        begun = nest.start[first:last]
        before = np.searchsorted(begun, start[calls], side="right")
        until = np.searchsorted(begun, end[calls], side="left")
        ended = np.append(nest.end[first:last], MISSING)[before - 1]  # MISSING: before them all
        during[calls] = (until > before) | ((ended > start[calls]) & (ended < end[calls]))
    return during


def _bounds_during_long_calls(nest: Nest, site: LaunchSites) -> int:
    """Count bounds of ranges while their thread is in a long call; 0 if there are few.

    A call during which several others begin is ignored: its own end may be wrong.
    """
    lasted_ns = site.end - site.start
    longest = np.flatnonzero(lasted_ns > _LONG_CALL_NS)
    if len(longest) > _LOOKED_AT:
        longest = longest[np.argpartition(-lasted_ns[longest], _LOOKED_AT)[:_LOOKED_AT]]
    within = ranges_of_threads = 0
    for number in np.unique(site.thread[longest]).tolist():
        calls = longest[site.thread[longest] == number]
        first, last = bounds_of(nest.thread, number)
        ranges_of_threads += last - first
        others = np.sort(site.start[site.thread == number])
        alone = calls[_count_between(others, site.start[calls], site.end[calls]) <= _MIN_COUNT]
        inner = site.start[alone] + _ROUNDING_NS, site.end[alone] - _ROUNDING_NS
        for bounds in (nest.start[first:last], np.sort(nest.end[first:last])):
            within += int(_count_between(bounds, *inner).sum())
    enough = max(_MIN_COUNT, 2 * _BOUNDS_SHARE * ranges_of_threads)
    return within if within >= enough else 0


def _count_between(sorted_times: Int64Array, start: Int64Array, end: Int64Array) -> Int64Array:
    """Count the times from each start to before its end."""
    return np.searchsorted(sorted_times, end) - np.searchsorted(sorted_times, start)


def _warn_unlinked(nest: Nest, ops: Mask, thread: IntArray, start: Int64Array) -> str | None:
    """Return the warning that no launch begins in a range of its thread; None if that is normal."""
    lasting = nest.end > nest.start
    if min(int(lasting.sum()), len(start)) < _MIN_COUNT:
        return None
    ours = lasting & np.isin(nest.thread, thread)
    if not ours.any():
        return (
            f"all {int(lasting.sum()):,} ranges are on threads that launch nothing: kernels have "
            "no op; mark the threads that launch; if you did, export or capture again"
        )
    if int(ours.sum()) < _MIN_COUNT:
        return None
    if nest.start[ours].min() > start.max() or nest.end[ours].max() < start.min():
        return (
            f"all {int(ours.sum()):,} ranges lie before or after all {len(start):,} launches of "
            "their threads: their clocks differ, so kernels have no op; capture again"
        )
    if count := int((ours & ops).sum()):
        return (
            f"none of {len(start):,} launches is in any of the {count:,} ops of its thread, so "
            "kernels have no op; export or capture again"
        )
    return None


def ranges(read: texts.Texts, endless: Mask, startless: Mask) -> Iterator[str]:
    """Warn of invalid bounds and texts of ranges."""
    if count := int(startless.sum()):
        yield (
            f"{count:,} of {len(startless):,} ranges begin at the capture's first instant, more "
            "than are ever nested: their starts are lost, and nothing is attributed "
            "to them; export or capture again"
        )
    if count := int(endless.sum()):
        yield (
            f"{count:,} of {len(endless):,} ranges have no end, more than are ever nested: nothing "
            "is attributed to them; export or capture again"
        )
    empty = np.array([not said.text for said in read.statements], bool)
    count = int(empty[read.code].sum())
    if count >= _MIN_COUNT and 2 * count > len(read.code):
        yield (
            f"{count:,} of {len(read.code):,} ranges have no text (is the table of strings "
            "missing?), so kernels have no op; export again"
        )
