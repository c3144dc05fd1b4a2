"""The database of nvprof."""

from collections.abc import Iterable
from pathlib import Path

from tests.capture_files.model import (
    CUPTI,
    SECRETS,
    Range,
    Rows,
    Strings,
    Table,
    Value,
    Work,
    number_work,
    write_tables,
)
from tests.capture_files.nsys import base_columns, kernel_columns

_BASE = ("_id_", "start", "end", "deviceId", "contextId", "streamId", "correlationId")
_KERNEL = (
    *("name", "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("staticSharedMemory", "dynamicSharedMemory", "sharedMemoryExecuted"),
)
_CALL = ("_id_", "cbid", "start", "end", "processId", "threadId", "correlationId")
_MARKER = ("_id_", "flags", "timestamp", "id", "objectKind", "objectId", "name", "domain")
_DEVICE = (
    *("id", "name", "globalMemoryBandwidth", "globalMemorySize", "coreClockRate"),
    *("numMultiprocessors", "computeCapabilityMajor", "computeCapabilityMinor"),
)
_CBIDS = {"kernel": 211, "memcpy": 41, "memset": 51}
"""CUPTI's numbers of cudaLaunchKernel_v7000, cudaMemcpyAsync_v3020 and cudaMemsetAsync_v3020."""


def nvprof_db(
    path: Path, work: Iterable[Work] = (), ranges: Iterable[Range] = (), *, version: int = 11
) -> Path:
    """Write the database that nvprof would: all tables exist; version 11 or 12 of CUPTI."""
    strings = Strings()
    numbered = number_work(work)
    kernels = [{**_base(n, w), **_kernel(w, strings)} for n, w in numbered if w.kind == "kernel"]
    driver = [_call(n, w) for n, w in numbered if w.call and w.driver]
    runtime = [_call(n, w) for n, w in numbered if w.call and not w.driver]
    extra = ("sharedMemoryCarveout",) if version > 11 else ()
    device = (0, strings("Tesla V100-SXM2-32GB"), 877_000_000, 32 << 30, 1_530_000, 80, 7, 0)
    tables: dict[str, Table] = {
        "CONCURRENT_KERNEL": ((*_BASE, *_KERNEL, *extra), kernels),
        "KERNEL": ((*_BASE, *_KERNEL, *extra), []),
        "MEMCPY": ((*_BASE, "bytes", "copyKind"), _others(numbered, "memcpy")),
        "MEMSET": ((*_BASE, "value", "bytes"), _others(numbered, "memset")),
        "RUNTIME": (_CALL, runtime),
        "DRIVER": (_CALL, driver),
        "MARKER": (_MARKER, _markers(ranges, strings)),
        "DEVICE": (_DEVICE, [dict(zip(_DEVICE, device, strict=True))]),
        "ENVIRONMENT": (("_id_", "data"), [{"data": secret} for secret in SECRETS]),
    }
    tables = {f"{CUPTI}{name}": table for name, table in tables.items()}
    rows: Rows = [{"_id_": number, "value": text} for text, number in strings.ids.items()]
    tables["StringTable"] = (("_id_", "value"), rows)
    tables["Version"] = (("version",), [{"version": version}])
    return write_tables(path, tables)


def _base(number: int, work: Work) -> dict[str, Value]:
    return {key: value for key, value in base_columns(number, work).items() if key != "globalPid"}


def _kernel(work: Work, strings: Strings) -> dict[str, Value]:
    found = kernel_columns(0, work, strings)
    kept = {key: value for key, value in found.items() if key in _KERNEL}
    return {**kept, "name": strings(work.name), "sharedMemoryExecuted": work.smem}


def _others(numbered: Iterable[tuple[int, Work]], kind: str) -> Rows:
    return [
        {**_base(n, w), "bytes": w.bytes, "copyKind": w.copy_kind, "value": 0}
        for n, w in numbered
        if w.kind == kind
    ]


def _call(number: int, work: Work) -> dict[str, Value]:
    start, end = work.call or (0, 0)
    signed = (work.tid & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)  # a signed 32 bits of the thread's id
    ids: dict[str, Value] = {"processId": work.pid, "threadId": signed, "correlationId": number}
    cbid = 307 if work.driver else _CBIDS.get(work.kind, _CBIDS["kernel"])
    return {"cbid": cbid, "start": start, "end": end, **ids}


def _markers(ranges: Iterable[Range], strings: Strings) -> Rows:
    rows: Rows = []
    for number, entry in enumerate(ranges, 1):
        blob = entry.pid.to_bytes(4, "little") + entry.tid.to_bytes(8, "little")
        common: dict[str, Value] = {"id": number, "objectKind": 2, "objectId": blob}
        name = strings(entry.text)
        rows.append({**common, "flags": 2, "timestamp": entry.at[0], "name": name})
        if entry.at[1] is not None:
            nothing = strings("-- null --")
            rows.append({**common, "flags": 4, "timestamp": entry.at[1], "name": nothing})
    return sorted(rows, key=lambda row: row["timestamp"])  # type: ignore[arg-type, return-value]
