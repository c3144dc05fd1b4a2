"""The layers that the user's ranges around a launch give its row.

These are nested ranges, and start/end ranges, which do not nest; also the range around a backward
pass, which PyTorch runs on a thread of its own, or around the launch of a graph.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker, schema
from pyprof.arrays import MISSING, ints, nearest
from pyprof.marker import Kind
from pyprof.parse.ranges import texts
from pyprof.parse.ranges.nesting import bounds_of, innermost, nest
from pyprof.parse.ranges.texts import LAYERS, NAMED, direction_hint, name
from pyprof.records.records import DictionaryColumn, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.schema import Capture


def layers(
    of_path: Sequence[Sequence[str]], path: IntArray, free: dict[int, list[str]]
) -> DictionaryColumn:
    """Name the layers around each row, outermost first; start/end layers before nested ones."""
    if not free:
        return DictionaryColumn(path, [*map(list, of_path)])
    index, values = path.copy(), [*map(list, of_path)]
    indices: dict[tuple[str, ...], int] = {}
    for row, names in free.items():
        combined = (*names, *of_path[path[row]])
        if combined not in indices:
            indices[combined] = len(values)
            values.append(list(combined))
        index[row] = indices[combined]
    return DictionaryColumn(index, values)


def free(capture: Capture, site: LaunchSites, most: int) -> dict[int, list[str]]:
    """Find the start/end layers around each row's site, on the thread that started them.

    If there are more than `most`, those that were started last.
    """
    ranges = capture.ranges.filter(pc.equal(capture.ranges.column("style"), schema.FREE))
    if not len(ranges):
        return {}
    named = texts.of_kinds(ranges, texts.LAYERS) & ~texts.of_library(ranges)
    ranges = ranges.filter(pa.array(named)).sort_by("start")
    rows = np.flatnonzero(site.row != MISSING) if len(ranges) else np.zeros(0, np.int64)
    thread, start, end = (part[site.row[rows]] for part in (site.thread, site.start, site.end))
    order = np.lexsort((start, thread))
    rows, thread, start, end = rows[order], thread[order], start[order], end[order]
    layers: dict[int, list[str]] = {}
    room = np.full(len(rows), most)
    for entry in reversed(ranges.select(["start", "end", "thread", "text"]).to_pylist()):
        first, last = bounds_of(thread, entry["thread"])
        low = first + int(np.searchsorted(start[first:last], entry["start"]))
        until = entry["end"] if entry["end"] is not None else np.iinfo(np.int64).max
        high = first + int(np.searchsorted(start[first:last], until, side="right"))
        inside = low + np.flatnonzero((end[low:high] <= until) & (room[low:high] > 0))
        room[inside] -= 1
        for row in rows[inside].tolist():
            layers.setdefault(row, []).append(texts.name(entry["text"]))
    return {row: names[::-1] for row, names in layers.items()}


def around(capture: Capture, sweep: Sweep, launch: Int64Array, site: LaunchSites) -> Int64Array:
    """Find the range whose layers apply if the ops at the site are in none; MISSING without one.

    For replayed work whose capture is unknown, the range around the launch of its graph, if any;
    otherwise the range around a backward pass.

    PyTorch runs the pass on a thread of its own while the caller waits. If its ranges show that a
    thread is autograd's, a launch there belongs to the range in which the caller waits. On any
    other thread without named ranges, a launch belongs to the range of another thread that names
    a backward pass, if only one thread of the process has such ranges: else it is unclear which.
    """
    range_of_row = np.full(len(launch), MISSING)
    rows = np.flatnonzero(launch != MISSING)
    # the calls come first among the launch sites
    call = launch[rows]
    thread, start, end = site.thread[call], site.start[call], site.end[call]
    range_of_row[rows] = _find_named_backward(capture, sweep, thread, start, end)
    for engine, caller in _callers(capture, sweep).items():
        of_engine = thread == engine
        waiting = np.full(int(of_engine.sum()), caller)
        range_of_row[rows[of_engine]] = innermost(
            sweep.nest, waiting, start[of_engine], end[of_engine]
        )
    no_site = site.row[rows] == MISSING
    at_launch = innermost(sweep.nest, thread[no_site], start[no_site], end[no_site])
    is_inside = at_launch != MISSING
    range_of_row[rows[no_site][is_inside]] = at_launch[is_inside]
    return range_of_row


def _callers(capture: Capture, sweep: Sweep) -> dict[int, int]:
    """Find autograd's own threads, and which thread each works for.

    On such a thread all of PyTorch's own ranges lie in the engine's. The caller is the thread of
    the forward pass, if recorded; else the only one of the process that has named ranges.
    """
    thread, parent = sweep.nest.thread, sweep.nest.parent
    kind = texts.kinds(sweep.texts)
    engine = texts.matches(sweep.texts, Kind.SEQ, attrgetter("is_engine"))
    if not engine.any():
        return {}
    outermost = (kind == Kind.SEQ) & (nearest(parent, kind == Kind.SEQ) == MISSING)
    others = np.unique(thread[outermost & ~engine])
    engines = np.setdiff1d(np.unique(thread[outermost & engine]), others)
    forward = ints(capture.ranges.column("forward_thread"))[sweep.row]
    pid = ints(capture.threads.column("pid"))
    named = np.setdiff1d(np.unique(thread[np.isin(kind, [*NAMED])]), engines)
    callers = {}
    for each in engines.tolist():
        ahead = np.unique(forward[(thread == each) & (forward != MISSING)])
        possible = ahead if len(ahead) else named[pid[named] == pid[each]]
        if len(possible) == 1 and possible[0] != each:
            callers[each] = int(possible[0])
    return callers


def _find_named_backward(
    capture: Capture, sweep: Sweep, thread: IntArray, start: Int64Array, end: Int64Array
) -> Int64Array:
    """Find the range named as backward around each launch on a thread without named ranges."""
    range_of_launch = np.full(len(thread), MISSING)
    backward = np.flatnonzero(np.any([_backward(sweep, kind) for kind in LAYERS], axis=0))
    if not len(backward) or not len(thread):
        return range_of_launch
    pid = np.append(ints(capture.threads.column("pid")), MISSING)
    caller = sweep.nest.thread[backward]
    # leave out processes in which several threads have such ranges
    first, number = distinct(pid[caller])
    alone = ~np.isin(pid[caller], np.unique(pid[caller][caller != caller[first[number]]]))
    backward, caller = backward[alone], caller[alone]
    kind = texts.kinds(sweep.texts)
    other = ~np.isin(thread, sweep.nest.thread[np.isin(kind, [*NAMED])])
    bounds = pid[caller], sweep.nest.start[backward], sweep.nest.end[backward]
    ranges = nest(*bounds, lambda: backward)
    inside = innermost(ranges, pid[thread[other]], start[other], end[other])
    range_of_launch[other] = np.append(backward[ranges.order], MISSING)[inside]
    return range_of_launch


def _backward(sweep: Sweep, kind: Kind) -> Mask:
    return texts.matches(
        sweep.texts,
        kind,
        lambda said: direction_hint(name(said.text, kind), kind) == marker.BACKWARD,
    )
