"""The calls of a trace that made the nodes of graphs, between begin and end of a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.arrays import ints as integers
from pyprof.readers.kernel_launches import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Int64Array, Mask

_NODES = (
    (schema.GRAPH, r"GraphLaunch"),  # a graph inside one
    (MISSING, r"LaunchHostFunc"),
    (schema.KERNEL, r"Launch"),
    (schema.MEMCPY, r"^(?:cuda|cu|hip)Memcpy"),
    (schema.MEMSET, r"^(?:cuda|cu|hip)Mem[sS]et(?:D\d+|2D|3D|Async|_|$)"),
)
"""Kinds of nodes and the calls that make them; the first that matches."""


class Captured(NamedTuple):
    """The graphs that were captured in a trace."""

    launches: pa.Table
    """The calls that made nodes, as CAPTURED_LAUNCHES."""
    graphs: int
    whole: bool
    """Whether every capture both begins and ends in the trace."""


class _Span(NamedTuple):
    begin: int
    end: int
    thread: int


def captured(
    calls: pa.Table, launched: Callable[[], pa.Table], ran: pa.Array, process: Int64Array
) -> Captured:
    """Find the graphs that were captured, and the calls that made their nodes.

    `launched` returns what each call records of its kernel, `ran` are the correlation ids of work
    that ran: a call that launched some made no node. `process` is the pid of each thread. A capture
    whose end is not in the trace is ignored.
    """
    spans, complete = _spans(calls)
    if not spans:
        return Captured(schema.CAPTURED_LAUNCHES.empty_table(), 0, complete)
    kind = np.full(len(calls), MISSING)
    for number, pattern in reversed(_NODES):
        kind[named(calls, pattern)] = number
    gone = pc.is_in(calls["corr"], value_set=ran.drop_null()).combine_chunks()
    kind[np.asarray(gone.to_numpy(zero_copy_only=False), bool)] = MISSING

    corr, start, end, thread = (
        integers(calls[name]) for name in ("corr", "start", "end", "thread")
    )
    rows = np.flatnonzero(kind != MISSING)
    rows = rows[np.lexsort((-end[rows], start[rows]))]
    rows = rows[_mark_outer_calls(corr[rows], process[thread[rows]], start[rows], end[rows])]
    graph = _graphs(spans, start[rows], thread[rows], process)
    rows, graph = rows[graph != MISSING], graph[graph != MISSING]

    kernels = launched().take(pa.array(rows))
    columns = {name: kernels.column(name) for name in kernels.column_names}
    columns |= {
        "graph": graph.astype(np.int32),
        "thread": calls["thread"].take(pa.array(rows)),
        "time": calls["start"].take(pa.array(rows)),
        "kind": kind[rows].astype(np.int8),
    }
    return Captured(schema.table(schema.CAPTURED_LAUNCHES, columns), len(spans), complete)


def _spans(calls: pa.Table) -> tuple[list[_Span], bool]:
    """Return the captures in the order in which they began, and whether all began and ended."""
    bounds = (rf"^(?:cuda|cu|hip)Stream{which}Capture" for which in ("Begin", "End"))
    begin, end = (named(calls, pattern) for pattern in bounds)
    rows = np.flatnonzero(begin | end)
    start, ends, thread = (integers(calls[name])[rows] for name in ("start", "end", "thread"))
    opened: dict[int, int] = {}
    spans, complete = [], True
    for index in np.argsort(start, kind="stable").tolist():
        on = int(thread[index])
        since = opened.pop(on, None)
        begins = bool(begin[rows[index]])
        complete &= begins == (since is None)
        if begins:
            opened[on] = int(ends[index])
        elif since is not None:
            spans.append(_Span(since, int(start[index]), on))
    return sorted(spans), complete and not opened


def _mark_outer_calls(
    corr: Int64Array, process: Int64Array, start: Int64Array, end: Int64Array
) -> Mask:
    """Mark all but the driver's calls inside a call of the runtime: both have one correlation id.

    Ids recur in other windows of a recording. Rows are in order of their start.
    """
    order = np.lexsort((np.arange(len(corr)), corr, process))
    same = (np.diff(corr[order], prepend=MISSING) == 0) & (
        np.diff(process[order], prepend=MISSING) == 0
    )
    inside = np.zeros(len(corr), bool)
    inside[order[1:]] = same[1:] & (start[order[1:]] <= end[order[:-1]])
    return np.asarray(~inside | (corr == MISSING))


def _graphs(
    spans: list[_Span], start: Int64Array, thread: Int64Array, process: Int64Array
) -> Int64Array:
    """Return the graph that was being captured at each call; MISSING if none was.

    Autograd's thread launches work that another thread captures; if several threads capture at the
    same time, each captures its own work.
    """
    graph, own = np.full((2, len(start)), MISSING)
    several = np.zeros(len(start), bool)
    for number, span in enumerate(spans):
        low, high = np.searchsorted(start, [span.begin, span.end])
        inside = low + np.flatnonzero(process[thread[low:high]] == process[span.thread])
        several[inside] |= graph[inside] != MISSING
        graph[inside] = number
        own[inside[thread[inside] == span.thread]] = number
    graph[several] = MISSING
    return np.where(own != MISSING, own, graph)
