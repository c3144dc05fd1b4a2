"""The content of a damaged file by another reader, of the standard library; without ranges.

It says how many rows there must be and how long they take together; nothing if it cannot tell.
"""

import gzip
import json
import math
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
_TABLES = ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "GRAPH_TRACE")
_PREFIX = "CUPTI_ACTIVITY_KIND_"
_ROCPD = re.compile(r"_?rocpd_(?:kernel_dispatch|memory_copy)(?:_[0-9a-f]+)*")


@dataclass(frozen=True)
class Truth:
    """The rows of GPU work in a file."""

    rows: int
    total_ns: int | None
    """None if some row's times are impossible: it belongs in no sum."""


def truth(path: Path, kind: str) -> Truth | None:
    """Read a file; None if the standard library cannot, or finds nothing to count."""
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
    complete = [each for each in listed if isinstance(each, dict) and each.get("ph") == "X"]
    events = [each for each in complete if each.get("cat") in _CATEGORIES]
    tracks = {_track(each) for each in events}
    if any(_track(each) in tracks for each in complete if each.get("cat") not in _CATEGORIES):
        return None  # a device's track holds work of any category: which, is the reader's rule
    times = [event.get(key) for event in events for key in ("ts", "dur")]
    if not events or any(map(_spells_a_number, times)):
        return None  # what such a text means is the reader's rule
    base_ns = whole.get("baseTimeNanoseconds")
    if type(base_ns) is not int or base_ns < 0:
        base_ns = 0
    starts = (_ns(event.get("ts")) for event in events)
    since_epoch = [start if start is None else start + base_ns for start in starts]
    return _summed(zip(since_epoch, (_ns(event.get("dur")) for event in events), strict=True))


def _track(event: dict[str, Any]) -> tuple[str, str]:
    return repr(event.get("pid")), repr(event.get("tid"))


def _spells_a_number(value: object) -> bool:
    try:
        return isinstance(value, str) and math.isfinite(float(value))
    except ValueError:
        return False


_MAX_US = 2**61 / 1000


def _ns(value: Any) -> int | None:  # noqa: ANN401 - JSON
    if type(value) not in (int, float) or not -_MAX_US < value < _MAX_US:
        return None
    fraction, whole = math.modf(float(value))
    return int(whole) * 1000 + round(fraction * 1000)


def _of_sqlite(path: Path) -> Truth | None:
    spans: list[tuple[int | None, int | None]] = []
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
        names = {row[0] for row in db.execute(query)}
        if any(str(name).startswith(f"{_PREFIX}{kind}_V") for name in names for kind in _TABLES):
            return None  # which of them counts is the reader's rule
        known = {_PREFIX + kind for kind in _TABLES}
        if known & names and any(_ROCPD.fullmatch(str(name)) for name in names):
            return None  # which of the two tools wrote it is the reader's rule
        for name in sorted(map(str, names)):
            if name in known or _ROCPD.fullmatch(name):
                found = list(_written(db.execute(f'SELECT * FROM "{name}"')))  # noqa: S608
                if not all(_is_clear(row) for row in found):
                    return None
                spans += [_span(row["start"], row["end"]) for row in found]
    return _summed(spans) if spans else None


def _written(rows: sqlite3.Cursor) -> Iterator[dict[str, Any]]:
    """Yield the rows with any value besides their number."""
    names = [column[0] for column in rows.description]
    for values in rows:
        row = dict(zip(names, values, strict=True))
        if any(value is not None for name, value in row.items() if name not in _NUMBERS):
            yield {"start": None, "end": None, **row}


_NUMBERS = ("_id_", "id", "guid")
_PLACES = ("start", "end", "deviceId", "streamId", "correlationId", "agent_id", "stream_id")


def _is_clear(row: dict[str, Any]) -> bool:
    """Whether times are whole numbers and the row has a device; other rows are up to the reader."""
    if "start_id" in row:  # they are in another table
        return False
    whole = all(row[key] is None or type(row[key]) is int for key in ("start", "end"))
    return whole and any(row.get(key) is not None for key in _PLACES)


_NOTHING = -(2**63)
"""A start that no clock shows, which means none."""


def _span(start: int | None, end: int | None) -> tuple[int | None, int | None]:
    if start is None or start == _NOTHING:
        return None, None
    return start, None if end is None else end - start


def _summed(spans: Iterable[tuple[int | None, int | None]]) -> Truth | None:
    """Count rows and add up their times, given start and length of each.

    None where two agree in both: whether they are one that was written twice is the reader's rule.
    """
    spans = list(spans)
    timed = [span for span in spans if span[0] is not None]
    if len(set(timed)) < len(timed):
        return None
    lengths = [length if start is not None and start >= 0 else None for start, length in spans]
    known = [length for length in lengths if length is not None and 0 <= length < _LONG_NS]
    return Truth(len(lengths), sum(known) if len(known) == len(lengths) else None)


_LONG_NS = 10**13
"""No capture lasts three hours; a row that does is damaged."""
