"""Nsight Systems' SQLite export, 2020.3 to 2026.2. The only module that knows its schema.

Tables appear when they have rows, columns come and go between versions, so everything is
addressed by name after probing. Facts about versions are next to the columns that they explain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, or_null
from pyprof.marker import templates
from pyprof.process.threads import thread_pool
from pyprof.readers import cupti
from pyprof.readers.nsys import graphs, info, payloads
from pyprof.readers.sqlite import tables as _sqlite
from pyprof.readers.sqlite.tables import Database, Numbered
from pyprof.readers.validate import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from pyprof.readers.sqlite.tables import Strings

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_STRINGS = "StringIds"
_SIGNS = (
    "NVTX_EVENTS",
    _CUPTI + "KERNEL",
    _CUPTI + "RUNTIME",
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
)
"""Every nsys export has one of these tables."""

FORMAT = "an nsys export (.sqlite)"
DATABASE = True

_PUSH_POP, _START_END = (59, 70), (60, 71)
"""NVTX_EVENTS.eventType of ranges; marks are 34 and names 39."""
_DOMAIN = 75
"""NVTX_EVENTS.eventType of events that name a domain."""

_DUPLICATE = 67
"""RUNTIME.eventClass of a second row for the same call, written with --cudabacktrace."""

_BASE = (*cupti.BASE_COLUMNS, "globalPid", "graphNodeId")
_NO_CORR = -1


def sniff(path: Path, head: bytes) -> bool:
    """Recognise an nsys export by its tables."""
    del head
    tables = Database(path).tables()
    return _STRINGS in tables and any(_find_table(tables, sign) in tables for sign in _SIGNS)


def read(path: Path) -> schema.Capture:
    """Read the kernels, copies, API calls and ranges of an nsys export."""
    db = Database(path)
    # SQLite and Arrow release the GIL: the texts of ranges are read at the same time as the rest.
    with thread_pool(1) as pool:
        reading = pool.submit(_read_events, db)
        strings = _sqlite.read(db, _STRINGS, "id", "value")
        runtime = _read_runtime(db)
        pids = np.unique(graphs.pids(ints(runtime.column("globalTid"), 0)))
        origins = graphs.read(db, runtime, strings)
        only_pid = int(pids[0]) if len(pids) == 1 else None
        # Sorted here, where it costs no time: reading the texts takes longer.
        work = _work(db, strings, runtime, origins, only_pid)
        activities = in_order(cupti.concat(work))
        version, devices = info.version(db), info.devices(db)
        began_ns, samples = info.began_ns(db), info.metrics(db)
        events, domains = reading.result()
    callers, markers = (ints(table.column("globalTid"), 0) for table in (runtime, events))
    tids, (call_threads, range_threads, node_threads) = cupti.index_of(
        [callers, markers, origins.global_tid]
    )
    return schema.Capture(
        tool="nsys",
        version=version,
        activities=activities,
        calls=_calls(runtime, call_threads, strings),
        ranges=_ranges(events, range_threads, strings, _domains(domains, strings)),
        threads=schema.table(schema.THREADS, {"pid": graphs.pids(tids), "tid": tids & 0xFFFFFF}),
        devices=devices,
        graph_nodes=origins.table(node_threads),
        samples=samples,
        warnings=tuple(info.warnings(db, activities, events)),
        began_ns=began_ns,
    )


TELLS_RANK = False


def identity(path: Path) -> schema.Identity:
    """Return the processes with GPU work, in the order of the devices that they use first."""
    db = Database(path)
    used = []
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
        table = _find_table(db.tables(), _CUPTI + kind)
        if "globalPid" not in db.columns(table):
            continue
        rows = db.read(
            table,
            {"globalPid": int, "deviceId": int},
            piece=lambda rows: rows.group_by(rows.column_names, use_threads=False).aggregate([]),
        )
        rows = rows.filter(pc.is_valid(rows.column("globalPid")))
        used.append((graphs.pids(ints(rows.column("globalPid"))), ints(rows.column("deviceId"))))
    return cupti.by_first_device(used)


def _find_table(tables: frozenset[str], name: str) -> str:
    """Return the table's name in this file: `NAME`, or the highest of `NAME_V2`, ..."""
    later = [table for table in tables if table.startswith(f"{name}_V") and table[-1].isdigit()]
    return max(later, default=name) if name not in tables else name


def _read_runtime(db: Database) -> pa.Table:
    """Read the API calls, each once: with --cudabacktrace there are second rows."""
    columns = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId")
    table = _find_table(db.tables(), _CUPTI + "RUNTIME")
    db.require(table, "start", "end", "globalTid", "correlationId")
    calls = db.read(table, dict.fromkeys(columns, int))
    if table in db.tables() and calls.column("start").null_count:
        calls = calls.filter(pc.is_valid(calls.column("start")))
    second = ints(calls.column("eventClass"), 0) == _DUPLICATE
    if not second.any():
        return calls
    pids = graphs.pids(ints(calls.column("globalTid"), 0))
    # of 33 bits: ids have 32, and none is _NO_CORR
    key = (pids << 33) | (ints(calls.column("correlationId"), _NO_CORR) & 0x1FFFFFFFF)
    return calls.filter(pa.array(~(second & np.isin(key, key[~second]))))


def _calls(runtime: pa.Table, threads: NDArray[np.int32], strings: Strings) -> pa.Table:
    start = runtime.column("start")
    return schema.table(
        schema.CALLS,
        {
            "start": start,
            "end": pc.coalesce(runtime.column("end"), start),
            "thread": threads,
            "corr": runtime.column("correlationId"),
            "name": strings.names(ints(runtime.column("nameId"), -1), "unknown call"),
        },
    )


def _read_events(db: Database) -> tuple[pa.Table, pa.Table]:
    """Read the NVTX events that are ranges, and those that name a domain."""
    table = _find_table(db.tables(), "NVTX_EVENTS")
    columns = dict.fromkeys(("start", "end", "eventType", "globalTid", "textId", "domainId"), int)
    db.require(table, "start", "end", "globalTid")
    domains: list[pa.Table] = []
    kinds_told = "eventType" in db.columns(table)

    def ranges(events: pa.Table) -> pa.Table:
        if not kinds_told:
            domains.append(events.slice(0, 0))
            return events
        kind = events.column("eventType")
        domains.append(events.filter(pc.equal(kind, _DOMAIN)))
        is_range = pc.is_in(kind, value_set=pa.array((*_PUSH_POP, *_START_END)))
        return events if pc.all(is_range).as_py() else events.filter(is_range)

    events = db.read(table, {**columns, "text": Numbered}, piece=ranges)
    named = {"domainId", "globalTid", "text"} <= db.columns(table)
    return events, pa.concat_tables(domains if named else domains[:1])


def _domains(events: pa.Table, strings: Strings) -> Mapping[tuple[int, int], str]:
    """Return the names of NVTX domains, by process and number, from the events that name them."""
    registered = strings.names(ints(events.column("textId"), -1), "").to_pylist()
    named = zip(
        graphs.pids(ints(events.column("globalTid"), 0)).tolist(),
        ints(events.column("domainId"), 0).tolist(),
        templates.spell(templates.texts_of_table(events)).to_pylist(),
        registered,
        strict=True,
    )
    return {(pid, number): text or other for pid, number, text, other in named}


def _ranges(
    events: pa.Table,
    threads: NDArray[np.int32],
    strings: Strings,
    domains: Mapping[tuple[int, int], str],
) -> pa.Table:
    free = np.isin(ints(events.column("eventType"), _PUSH_POP[0]), _START_END)
    # domain of each range; null for the default one, and for one without a name
    pids = graphs.pids(ints(events.column("globalTid"), 0))
    number = ints(events.column("domainId"), 0)
    place = np.full(len(events), -1)
    for row, (pid, domain) in enumerate(domains):
        place[(pids == pid) & (number == domain)] = row
    distinct = pa.array([*domains.values()], pa.string()).dictionary_encode()
    index = distinct.indices.take(pa.array(place, mask=place < 0))
    domain = pa.DictionaryArray.from_arrays(index.cast(pa.int32()), distinct.dictionary)
    return schema.table(
        schema.RANGES,
        {
            "start": events.column("start"),
            "end": _close_ranges(events),
            "thread": threads,
            "style": np.where(free, schema.FREE, schema.NESTED).astype(np.int8),
            "domain": domain,
            **_texts(events, strings),
        },
    )


def _close_ranges(events: pa.Table) -> pa.ChunkedArray:
    """Return each range's end; null for those still open when profiling stopped.

    nsys ends them all at its last instant, exactly.
    """
    ends = events.column("end")
    last, starts = pc.max(ends).as_py(), events.column("start")
    at_last = pc.equal(ends, last)
    alike = pc.sum(at_last).as_py() or 0
    if alike < _OPEN_RANGES or last <= (pc.max(starts).as_py() or 0):
        return ends
    return pc.if_else(at_last, None, ends)


_OPEN_RANGES = 3
"""Minimum of ranges that end at the last instant for it to be no chance."""


def _texts(events: pa.Table, strings: Strings) -> dict[str, pa.ChunkedArray]:
    """Return each range's text: written in place, or registered once and referenced by id."""
    texts, ids = events.select([*templates.NAMES]), events.column("textId")
    if ids.null_count < len(ids):
        number = ints(ids, -1)
        rows = np.where(number < 0, np.arange(len(ids)), len(ids) + strings.rows(number))
        texts = cupti.concat([texts, strings.texts]).combine_chunks().take(pa.array(rows))
    texts = texts.unify_dictionaries().combine_chunks()
    return dict(zip(texts.column_names, texts.columns, strict=True))


def _read(db: Database, kind: str, *more: str) -> pa.Table:
    table = _find_table(db.tables(), _CUPTI + kind)
    db.require(table, "start", "end", "correlationId")
    return db.read(table, dict.fromkeys((*_BASE, *more), int))


def _work(
    db: Database, strings: Strings, runtime: pa.Table, origins: graphs.Origins, only_pid: int | None
) -> Iterator[pa.Table]:
    """Yield kernels, copies, fills, and graphs whose kernels are not in the file.

    `only_pid` is for work without a process: the only one that made API calls.
    """
    kernels = _read(db, "KERNEL", "demangledName", *cupti.KERNEL_COLUMNS)
    name = strings.names(ints(kernels.column("demangledName"), -1), "unknown kernel")
    events = _find_table(db.tables(), "NVTX_EVENTS")
    of_kernels = {
        **cupti.kernel_columns(kernels),
        "name": name,
        "collective": payloads.collectives(db, events, name, kernels, runtime, strings),
    }
    copies = _read(db, "MEMCPY", "bytes", "copyKind")
    fills = _read(db, "MEMSET", "bytes")
    whole_graphs = _read(db, "GRAPH_TRACE", "graphId")
    graph_ids = whole_graphs.column("graphId").to_pylist()
    graph_names = pa.array(
        ["[CUDA graph]" if number is None else f"[CUDA graph {number}]" for number in graph_ids],
        pa.string(),
    )
    copy_names = cupti.copy_names(ints(copies.column("copyKind"), 0))
    fill_names = cupti.constant("[CUDA memset]", fills.num_rows)
    for rows, kind, own in (
        (kernels, schema.KERNEL, of_kernels),
        (copies, schema.MEMCPY, {"bytes": copies.column("bytes"), "name": copy_names}),
        (fills, schema.MEMSET, {"bytes": fills.column("bytes"), "name": fill_names}),
        (whole_graphs, schema.GRAPH, {"name": graph_names.dictionary_encode()}),
    ):
        columns = {**cupti.base_columns(rows, kind), **own}
        number = ints(rows.column("globalPid"))
        if only_pid is not None or (number != MISSING).any():
            absent = MISSING if only_pid is None else only_pid
            pid = np.where(number == MISSING, absent, graphs.pids(number))
            columns["pid"] = or_null(pid)
            if (node := rows.column("graphNodeId")).null_count < rows.num_rows:
                # without a start, its node is the last one of this id
                start = ints(rows.column("start"), (1 << 63) - 1)
                columns["graph_node"] = origins.of_nodes(pid, ints(node, 0), start)
        yield schema.table(schema.ACTIVITIES, columns)
