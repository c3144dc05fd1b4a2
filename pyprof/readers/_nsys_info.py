"""What an nsys export says of itself: version, GPUs, and what the user should know.

Environment variables, host and user names are in these files too; they are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import ints
from pyprof.readers.spans import LONGEST_NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pyprof.readers._sqlite import Database

_META = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # from 2024.2 on; 2022.1 to 2023.4
_SESSION = "TARGET_INFO_SESSION_START_TIME"  # from 2022.1 on
_GPUS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")  # from 2021.2 on; 2020.3
_GPU_COLUMNS = {
    # our name: theirs, newest first
    "device": ("cuDevice", "id"),
    "sm_count": ("smCount", "numMultiprocessors"),
    "clock_hz": ("clockRate", "coreClockRate"),
    "bandwidth": ("memoryBandwidth", "globalMemoryBandwidth"),
    "cc_major": ("computeMajor", "computeCapabilityMajor"),
    "cc_minor": ("computeMinor", "computeCapabilityMinor"),
    "memory_bytes": ("totalMemory", "globalMemorySize"),
}
_LOSS = (
    r"(?i)\b(?:lost|dropped|overflow\w*|discarded|exceeded|incomplete)\b"
    r"|not all (?:CUDA|NVTX) .*(?:collected|recorded)"
)
_NS_PER_MS = 1e6


def version(db: Database) -> str | None:
    """Give the version of nsys that exported the file, where it says (2022.1 and later)."""
    for table in _META:
        if table in db.tables():
            rows = db.read(table, {"name": str, "value": str})
            said = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            if "EXPORT_PRODUCT_VERSION" in said:
                return str(said["EXPORT_PRODUCT_VERSION"])
    return None


def began_ns(db: Database) -> int | None:
    """Give when the session began, ns since 1970, where the file says; its clock then showed 0."""
    if _SESSION not in db.tables():
        return None
    began = ints(db.read(_SESSION, {"utcEpochNs": int}).column("utcEpochNs"))
    return int(began[0]) if len(began) and began[0] > 0 else None


def devices(db: Database) -> pa.Table:
    """Give the GPUs; what a row does not say, as integrated GPUs of their SMs, is null."""
    table = next((name for name in _GPUS if name in db.tables()), _GPUS[0])
    columns = {name: int for names in _GPU_COLUMNS.values() for name in names}
    rows = db.read(table, {"name": str, **columns})
    columns_of_gpus = {
        ours: pc.coalesce(*(rows.column(name) for name in names))
        for ours, names in _GPU_COLUMNS.items()
    }
    if columns_of_gpus["device"].null_count:
        columns_of_gpus["device"] = pc.coalesce(columns_of_gpus["device"], np.arange(rows.num_rows))
    columns_of_gpus = {
        key: _positive(value) if key not in _MAY_BE_ZERO else value
        for key, value in columns_of_gpus.items()
    }
    return schema.table(schema.DEVICES, {**columns_of_gpus, "name": rows.column("name")})


_MAY_BE_ZERO = ("device", "cc_minor")


def _positive(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.greater(column, 0), column, None)


def warnings(db: Database, activities: pa.Table, events: pa.Table) -> Iterator[str]:
    """Say what this capture hides, in sentences."""
    kinds = ints(activities.column("kind"), 0)
    if (graphs := kinds == schema.GRAPH).any():
        yield _graph_warning(activities, graphs)
    if not events.num_rows:
        yield (
            "the capture has no NVTX ranges, so kernels cannot be tied to ops; "
            "call pyprof.init() in the script and capture with nsys profile -t cuda,nvtx"
        )
    yield from _lost_events(db)


def _graph_warning(activities: pa.Table, graphs: np.ndarray) -> str:
    starts, ends = (ints(activities.column(name), 0) for name in ("start", "end"))
    lasted = np.clip(ends - starts, 0, LONGEST_NS)  # impossible times are reported elsewhere
    hidden_ms = int(lasted[graphs].sum()) / _NS_PER_MS
    shown_ms = int(lasted[~graphs].sum()) / _NS_PER_MS
    return (
        f"{int(graphs.sum())} CUDA graph launches contain {hidden_ms:,.2f} ms of GPU time "
        f"whose kernels are not in the capture ({shown_ms:,.2f} ms is outside them); to see them, "
        "capture again with nsys profile --cuda-graph-trace=node"
    )


def _lost_events(db: Database) -> Iterator[str]:
    rows = db.read("DIAGNOSTIC_EVENT", {"text": str})
    for text in dict.fromkeys(rows.column("text").to_pylist()):
        if pc.match_substring_regex(text, _LOSS).as_py():
            yield f"message from nsys: {' '.join(text.split())}"
