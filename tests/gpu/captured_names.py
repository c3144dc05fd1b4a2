"""The distinct kernel names of the shared captures, read with the standard library only."""

import gzip
import json
import re
import sqlite3
from functools import cache
from pathlib import Path

CAPTURES = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures"

_NAME = re.compile(
    rb'"cat":\s*"(?:kernel|gpu_mem(?:cpy|set))",\s*"name":\s*("(?:[^"\\]|\\.)*")', re.IGNORECASE
)
"""The name of a kernel's event in a trace: what writes them always puts it there."""


@cache
def captured_names() -> tuple[str, ...]:
    """Return every distinct kernel, memcpy and memset name; empty if there are no captures."""
    names: set[str] = set()
    for path in CAPTURES.rglob("*"):
        if path.is_file():
            names |= _names(path)
    return tuple(sorted(names))


def _names(path: Path) -> set[str]:
    """Return the names in a file; none for tables, snapshots and other files without kernels."""
    with path.open("rb") as file:
        head = file.read(16)
    if head.startswith(b"SQLite format 3"):
        return _from_sqlite(path)
    return _from_trace(path) if path.name.endswith((".json", ".json.gz")) else set()


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
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return {json.loads(name) for name in set(_NAME.findall(text))}
