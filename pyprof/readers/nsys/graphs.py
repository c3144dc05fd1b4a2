"""Where the nodes of CUDA graphs were captured, by nsys (`--cuda-graph-trace=node`).

An event records when and on which thread a node was made. A graph that is instantiated, cloned or
inserted into another one has its own nodes, each with the node that it was made from: the first
node of such a chain was captured, inside the ranges of its op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, first_index, ints, latest_before, or_null

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.readers.sqlite.tables import Database, Strings

_TABLES = ("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS")
"""The second, of graphs, had the nodes' columns in exports of 2022."""
_COLUMNS = ("start", "globalTid", "nameId", "graphNodeId", "originalGraphNodeId")

_NO_NODE = 0
"""The id of no node, like a missing value."""

_DESTRUCTION = r"(?i)destr|delet"
"""Names of events that end a node."""
_COPYING = r"^(?:cuda|cu)Graph(?:Instantiate|Clone|AddChildGraph|ExecUpdate)"
"""Calls that clone nodes, whose ops are elsewhere."""

_VIA = schema.VIAS.index("graph node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """The nodes that were captured, and the captured node that each node was made from."""

    global_tid: Int64Array
    """The thread of each captured node."""
    time: Int64Array
    _ids: Int64Array
    """All ids of nodes, ascending; each process may use any of them."""
    _keys: Int64Array
    """For each event, process and id of the node as one number."""
    _start: Int64Array
    """Start of each event; ids may recur, for example after a pause of the profiler."""
    _origin: Int64Array
    """For each event, the row of the captured node; MISSING if unknown."""

    def of_nodes(self, pid: Int64Array, node: Int64Array, time: Int64Array) -> pa.Array:
        """Return the row of the captured node, for nodes that ran at some time; null if unknown."""
        wanted = _keys(self._ids, pid, node)
        event = latest_before(self._keys, self._start, wanted, time)
        row = np.append(self._origin, MISSING)[np.where(wanted == MISSING, MISSING, event)]
        return or_null(row.astype(np.int32))

    def table(self, threads: IntArray) -> pa.Table:
        """Return the capture's table, with the row of `threads` of each node."""
        via = np.full(len(self.time), _VIA, np.int8)
        return schema.table(schema.GRAPH_NODES, {"thread": threads, "time": self.time, "via": via})


def read(db: Database, runtime: pa.Table, strings: Strings) -> Origins:
    """Read the events of nodes, and follow each node to the captured one."""
    events = _events(db, strings)
    tid, start, node, made_of = (
        ints(events.column(name), _NO_NODE)
        for name in ("globalTid", "start", "graphNodeId", "originalGraphNodeId")
    )
    ids = np.unique(node)
    keys = _keys(ids, pids(tid), node)
    made = (made_of != _NO_NODE) & (made_of != node)
    above = latest_before(keys, start, _keys(ids, pids(tid), made_of), start)
    origin = _find_origins(made, above)
    copying = runtime.filter(pa.array(_match_names(runtime, strings, _COPYING)))
    origin[_mark_inside(copying, tid, start)[origin]] = MISSING
    used = np.unique(origin[origin != MISSING])
    row = np.where(origin == MISSING, MISSING, np.searchsorted(used, origin))
    return Origins(
        global_tid=tid[used], time=start[used], _ids=ids, _keys=keys, _start=start, _origin=row
    )


def pids(global_ids: Int64Array) -> Int64Array:
    """Extract the process from serialised ids: they hold machine, process and thread (24 bits)."""
    return (global_ids >> 24) & 0xFFFFFF


def _events(db: Database, strings: Strings) -> pa.Table:
    tables = [
        db.read(table, dict.fromkeys(_COLUMNS, int))
        for table in _TABLES
        if {"start", "globalTid", "graphNodeId"} <= db.columns(table)
    ]
    if not tables:
        return pa.table({name: pa.array([], pa.int64()) for name in _COLUMNS})
    events = pa.concat_tables(tables)
    identified = np.all([ints(events.column(name), _NO_NODE) != _NO_NODE
                   for name in ("globalTid", "graphNodeId")], axis=0)  # fmt: skip
    identified &= np.asarray(events.column("start").is_valid())
    return events.filter(pa.array(identified & ~_match_names(events, strings, _DESTRUCTION)))


def _match_names(rows: pa.Table, strings: Strings, pattern: str) -> Mask:
    names = strings.names(ints(rows.column("nameId"), MISSING), "")
    matches = pc.match_substring_regex(names.dictionary, pattern)
    return np.asarray(matches.take(names.indices))


def _keys(ids: Int64Array, pid: Int64Array, node: Int64Array) -> Int64Array:
    """Combine process and id of a node into one number; MISSING for an invalid id."""
    index = first_index(ids, node)
    return np.where((index != MISSING) & (pid >= 0), pid * len(ids) + index, MISSING)


def _find_origins(made: Mask, above: Int64Array) -> Int64Array:
    """Follow each event that cloned a node back to that of a capture; MISSING without one.

    Each round goes twice as far as the one before.
    """
    count = len(made)
    made_of = np.where(above == MISSING, count, above)  # the entry at `count` stands for no event
    index = np.append(np.where(made, made_of, np.arange(count)), count)
    for _ in range(count.bit_length()):
        further = index[index]
        if np.array_equal(further, index):
            break
        index = further
    captured = np.append(~made, [False])  # others are cycles
    return np.where(captured[index[:-1]], index[:-1], MISSING)


def _mark_inside(calls: pa.Table, tid: Int64Array, time: Int64Array) -> Mask:
    """Mark the instants that lie inside some of these calls of their thread."""
    inside = np.zeros(len(time) + 1, bool)
    caller, start, end = (
        ints(calls.column(name), MISSING) for name in ("globalTid", "start", "end")
    )
    for thread in np.unique(caller).tolist():
        ours = np.flatnonzero(caller == thread)
        ours = ours[np.argsort(start[ours], kind="stable")]
        rows = np.flatnonzero(tid == thread)
        before = np.searchsorted(start[ours], time[rows], side="right")
        until = np.append(np.maximum.accumulate(end[ours]), MISSING)[before - 1]
        inside[rows] = (before > 0) & (time[rows] <= until)
    return inside
