"""The distinct kernel names of the shared captures, read with the standard library alone."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

CAPTURES = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures"


def captured_names() -> list[str]:
    """Return every distinct kernel, memcpy and memset name; empty where there are no captures."""
    names: set[str] = set()
    for path in sorted(CAPTURES.glob("*/*")):
        with path.open("rb") as file:
            head = file.read(16)
        if head.startswith(b"SQLite format 3"):
            names |= _from_sqlite(path)
        elif ".json" in path.name:
            names |= _from_trace(path)
    return sorted(names)


def _from_sqlite(path: Path) -> set[str]:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        tables = {row[0] for row in connection.execute("select name from sqlite_master")}
        if "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL" in tables:
            query = (
                "select distinct s.value from CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL k"
                " join StringTable s on s._id_ = k.name"
            )
        elif "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
            query = (
                "select distinct s.value from CUPTI_ACTIVITY_KIND_KERNEL k"
                " join StringIds s on s.id = k.demangledName"
            )
        else:
            return set()
        return {row[0] for row in connection.execute(query)}
    finally:
        connection.close()


def _from_trace(path: Path) -> set[str]:
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    return {e["name"] for e in trace["traceEvents"] if e.get("cat", "").lower() in kinds}
