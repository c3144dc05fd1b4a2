"""nvprof's database (`nvprof -o net.sql`), CUPTI v11 and v12. No other module knows its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import first_index, ints, texts_by_index
from pyprof.readers import cupti
from pyprof.readers.cupti import call_name
from pyprof.readers.sqlite import tables as _sqlite
from pyprof.readers.sqlite.tables import Database

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pyprof.readers.sqlite.tables import Strings

FORMAT = "an nvprof database"
DATABASE = True

_CUPTI = "CUPTI_ACTIVITY_KIND_"
_KERNELS = ("CONCURRENT_KERNEL", "KERNEL")  # the second: --concurrent-kernels off
_API = ("RUNTIME", "DRIVER")
_COPIES = ("MEMCPY", "MEMCPY2")  # the second: between devices
_START, _END = 2, 4
"""MARKER.flags of the two rows of a range (1 is an instant)."""

_TID_BITS = 0xFFFFFFFF
"""A thread's id is its low 32 bits: markers store 64 of them, API calls a signed 32."""


def sniff(path: Path, head: bytes) -> bool:
    """Recognise an nvprof database by its string table, which nsys names otherwise."""
    del head
    tables = Database(path).tables()
    return "StringTable" in tables and any(table.startswith(_CUPTI) for table in tables)


def read(path: Path) -> schema.Capture:
    """Read the kernels, copies, API calls and ranges of an nvprof database."""
    db = Database(path)
    strings = _sqlite.read(db, "StringTable", "_id_", "value")
    calls, call_ids = _calls(db)
    ranges, range_ids = _ranges(db, strings)
    ids = np.concatenate([call_ids, range_ids])
    keys, threads = np.unique(ids, axis=0, return_inverse=True)  # (pid, tid)
    call_threads, range_threads = np.split(threads.reshape(-1).astype(np.int32), [len(call_ids)])
    calls = {**calls, "thread": call_threads}
    version = db.read("Version", {"version": int}).column("version")
    columns = ("id", "name", "numMultiprocessors", "coreClockRate", "globalMemoryBandwidth")
    more = ("globalMemorySize", "computeCapabilityMajor", "computeCapabilityMinor")
    rows = db.read(_CUPTI + "DEVICE", dict.fromkeys((*columns, *more), int))
    devices = schema.table(
        schema.DEVICES,
        {
            "device": rows.column("id"),
            "name": strings.names(ints(rows.column("name"), -1), "").cast(pa.string()),
            "sm_count": rows.column("numMultiprocessors"),
            "clock_hz": pc.multiply(rows.column("coreClockRate"), 1000),  # stored in kHz
            "bandwidth": pc.multiply(rows.column("globalMemoryBandwidth"), 1000),  # in kB/s
            "cc_major": rows.column("computeCapabilityMajor"),
            "cc_minor": rows.column("computeCapabilityMinor"),
            "memory_bytes": rows.column("globalMemorySize"),
        },
    )
    return schema.Capture(
        tool="nvprof",
        version=f"CUPTI {version[0]}" if len(version) else None,
        activities=_activities(db, strings, calls, keys),
        calls=schema.table(schema.CALLS, calls),
        ranges=schema.table(schema.RANGES, {**ranges, "thread": range_threads}),
        threads=schema.table(schema.THREADS, {"pid": keys[:, 0], "tid": keys[:, 1]}),
        devices=devices,
        warnings=() if len(range_ids) else (_NO_RANGES,),
    )


_NO_RANGES = (
    "the capture has no NVTX ranges, so kernels cannot be tied to ops; "
    "call pyprof.init() in the script"
)


def _calls(db: Database) -> tuple[dict[str, Any], NDArray[np.int64]]:
    columns = dict.fromkeys(("start", "end", "processId", "threadId", "correlationId", "cbid"), int)
    for api in _API:
        db.require(_CUPTI + api, "start", "end", "processId", "threadId", "correlationId")
    tables = [db.read(_CUPTI + api, columns) for api in _API]
    tables = [table.filter(pc.is_valid(table.column("start"))) for table in tables]
    rows = pa.concat_tables(tables)
    apis = np.repeat(np.arange(len(_API)), [table.num_rows for table in tables])
    ids = np.stack(
        [ints(rows.column("processId"), 0), ints(rows.column("threadId"), 0) & _TID_BITS], axis=1
    )
    codes = apis * _MAX_CALLS + ints(rows.column("cbid"), 0)
    used, inverse = np.unique(codes, return_inverse=True)
    names = [call_name(_API[code // _MAX_CALLS], int(code % _MAX_CALLS)) for code in used]
    start = rows.column("start")
    return {
        "start": start,
        "end": pc.coalesce(rows.column("end"), start),
        "corr": rows.column("correlationId"),
        "name": texts_by_index(inverse, names),
    }, ids


_MAX_CALLS = 1 << 20
"""Greater than every number of a call (`cbid`)."""


def _ranges(db: Database, strings: Strings) -> tuple[dict[str, object], NDArray[np.int64]]:
    """Rebuild the ranges: a start and an end row share an id; one without an end is still open."""
    columns = {"id": int, "flags": int, "timestamp": int, "name": int}
    db.require(_CUPTI + "MARKER", "id", "flags", "timestamp", "objectId")
    rows = db.read(_CUPTI + "MARKER", {**columns, "objectId": bytes})
    flags, ids = ints(rows.column("flags"), 0), ints(rows.column("id"), -1)
    times = rows.column("timestamp")
    starts, ends = (np.flatnonzero(flags & bit != 0) for bit in (_START, _END))
    partner = first_index(ids[ends], ids[starts])
    has_end = partner >= 0
    end_rows = pa.array(np.where(has_end, ends[partner] if len(ends) else 0, 0), mask=~has_end)
    texts = strings.texts.take(pa.array(strings.rows(ints(rows.column("name"), -1)[starts])))
    ranges = {
        "start": times.take(pa.array(starts)),
        "end": times.take(end_rows),
        "style": np.full(len(starts), schema.NESTED, np.int8),
        **dict(zip(texts.column_names, texts.columns, strict=True)),
    }
    return ranges, _object_ids(rows.column("objectId").take(pa.array(starts)))


def _object_ids(blobs: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return (pid, tid) of each 12-byte object id: int32 process, int64 thread, little-endian."""
    used = blobs.combine_chunks().dictionary_encode()
    raw = b"".join(blob[:12].ljust(12, b"\0") for blob in used.dictionary.to_pylist())
    ids = np.frombuffer(raw, np.dtype([("pid", "<u4"), ("tid", "<i8")]))
    pairs = np.stack([ids["pid"].astype(np.int64), ids["tid"] & _TID_BITS], axis=1)
    return np.asarray(pairs[used.indices.to_numpy(zero_copy_only=False)])


def _activities(
    db: Database, strings: Strings, calls: dict[str, Any], threads: NDArray[np.int64]
) -> pa.Table:
    rows = cupti.concat(
        [
            *(_kernels(db, kind, strings) for kind in _KERNELS),
            *(_transfers(db, table, schema.MEMCPY, "copyKind") for table in _COPIES),
            _transfers(db, "MEMSET", schema.MEMSET),
        ]
    )
    # Activities have no process: take that of the API call that launched each.
    pids = threads[:, 0][calls["thread"]]
    call = first_index(ints(calls["corr"], -1), ints(rows.column("corr"), -2))
    has_call = call >= 0
    pid = np.where(has_call, pids[call] if len(pids) else 0, 0)
    if len(set(threads[:, 0])) == 1:
        pid, has_call = np.full(len(pid), threads[0, 0]), np.full(len(pid), fill_value=True)
    return rows.set_column(rows.column_names.index("pid"), "pid", pa.array(pid, mask=~has_call))


def _read(db: Database, kind: str, *more: str) -> pa.Table:
    db.require(_CUPTI + kind, "start", "end", "correlationId")
    return db.read(_CUPTI + kind, dict.fromkeys((*cupti.BASE_COLUMNS, *more), int))


def _kernels(db: Database, kind: str, strings: Strings) -> pa.Table:
    rows = _read(db, kind, "name", *cupti.KERNEL_COLUMNS)
    name = strings.names(ints(rows.column("name"), -1), "unknown kernel")
    columns = {**cupti.base_columns(rows, schema.KERNEL), **cupti.kernel_columns(rows)}
    return schema.table(schema.ACTIVITIES, {**columns, "name": name})


def _transfers(db: Database, table: str, kind: int, *more: str) -> pa.Table:
    rows = _read(db, table, "bytes", *more)
    names = (
        cupti.copy_names(ints(rows.column("copyKind"), 0))
        if more
        else cupti.constant("[CUDA memset]", rows.num_rows)
    )
    columns = {**cupti.base_columns(rows, kind), "bytes": rows.column("bytes"), "name": names}
    return schema.table(schema.ACTIVITIES, columns)
