"""What a damaged file holds, told by another reader: the standard library's, knowing no ranges.

It says how many rows there must be and how long they take together; nothing where it cannot tell.
"""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
import zlib
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
_TABLES = ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "GRAPH_TRACE")
_PREFIX = "CUPTI_ACTIVITY_KIND_"


@dataclass(frozen=True)
class Truth:
    """The rows of GPU work in a file."""

    rows: int
    total_ns: int | None
    """None where some row's times are impossible: it belongs in no sum."""


def truth(path: Path, kind: str) -> Truth | None:
    """Read a file; None where the standard library cannot, or finds nothing to count."""
    try:
        if kind == "sqlite":
            return _of_sqlite(path)
        if kind in ("json", "gzip"):
            data = path.read_bytes()
            return _of_trace(json.loads(gzip.decompress(data) if kind == "gzip" else data))
    except (ValueError, sqlite3.Error, OSError, EOFError, zlib.error, RecursionError):
        return None
    return None


def _of_trace(whole: Any) -> Truth | None:  # noqa: ANN401 - JSON
    listed = whole.get("traceEvents") if isinstance(whole, dict) else None
    if not isinstance(listed, list):
        return None
    events = [
        event
        for event in listed
        if isinstance(event, dict)
        and event.get("ph") == "X"
        and isinstance(event.get("cat"), str)
        and event["cat"] in _WORK
    ]
    timed = [event for event in events if _is_time(event.get("ts"))]
    if any(isinstance(event.get("ts"), str) for event in events) or not timed:
        return None
    return _summed((_ns(event["ts"]), _ns(event.get("dur"))) for event in timed)


_MOST_US = 2**61 / 1000


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and -_MOST_US < value < _MOST_US  # type: ignore[operator]


def _ns(value: object) -> int | None:
    """Give a time in ns, of the microseconds that the trace holds."""
    if not _is_time(value):
        return None
    fraction, whole = math.modf(float(value))  # type: ignore[arg-type]
    return int(whole) * 1000 + round(fraction * 1000)


def _of_sqlite(path: Path) -> Truth | None:
    spans: list[tuple[int | None, int | None]] = []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
        names = {row[0] for row in db.execute(query)}
        for kind in _TABLES:
            if any(str(name).startswith(f"{_PREFIX}{kind}_V") for name in names):
                return None  # which of them counts is the reader's rule
            if _PREFIX + kind in names:
                found = db.execute(f'SELECT start, "end" FROM "{_PREFIX}{kind}"').fetchall()  # noqa: S608
                if not all(_whole(value) for row in found for value in row):
                    return None
                spans += found
    return _summed((start, None if end is None else end - start) for start, end in spans if
                   start not in (None, _NOTHING)) if spans else None  # fmt: skip


_NOTHING = -(2**63)
"""The start that no clock shows: it stands for none."""


def _whole(value: object) -> bool:
    return value is None or type(value) is int


def _summed(spans: Iterable[tuple[int | None, int | None]]) -> Truth | None:
    """Count rows and add up their times, given start and length of each.

    None where two agree in both: whether they are one that was written twice is the reader's rule.
    """
    spans = list(spans)
    if len(set(spans)) < len(spans):
        return None
    lengths = [length if start is not None and start >= 0 else None for start, length in spans]
    known = [length for length in lengths if length is not None and 0 <= length < _LONG_NS]
    return Truth(len(lengths), sum(known) if len(known) == len(lengths) else None)


_LONG_NS = 10**13
"""No capture lasts three hours; a row that does is damaged."""
