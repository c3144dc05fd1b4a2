"""Traces of torch.profiler, one for each window of a capture, joined to a single one.

All come from one process, and so count time from the same instant. Between two windows stand the
calls that end the one and begin the other, as Nsight Systems and nvprof record them.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.process import atomic_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from io import BufferedIOBase
    from typing import BinaryIO

    Tables = dict[str, list[str]]
    """The columns of each."""

_BLOCK = 1 << 20
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_AFTER = b'"traceName"'
_MARKS = 4096
"""The bounds of a window are among its last events, within so many bytes."""
_BEGIN = re.compile(rb'"Iteration Start: PyTorch Profiler".*?"ts": ([\d.]+)', re.DOTALL)
_END = re.compile(rb'"Record Window End".*?"ts": ([\d.]+)', re.DOTALL)


def join_trace_windows(
    windows: Iterable[Path],
    target: BufferedIOBase,
    more: Callable[[bytes], bytes] = lambda _: b"",
) -> None:
    """Write the traces as one: what the first says of the process, and the events of all.

    `more` gives further events, each behind a comma, for what the first says of the process.
    Raises OSError where one is not whole.
    """
    before, rest, header = b"", b"", b""
    for path in windows:
        if not path.stat().st_size:
            raise OSError(_CUT)
        with path.open("rb") as file, closing(_mapped(file)) as text:
            opening, after = _EVENTS.search(text), text.rfind(_AFTER)
            if opening is None or after < 0:
                raise OSError(_CUT)
            first, last = opening.end(), text.rfind(b"]", 0, after)
            marks = text[max(last - _MARKS, first) : last]
            target.write(_pause(before, marks) if before else text[:first])
            blocks = range(first, last, _BLOCK)
            target.writelines(text[start : min(start + _BLOCK, last)] for start in blocks)
            before, rest, header = marks, rest or text[last:], header or text[:first]
    target.write(more(header + rest))  # older torch says when time begins there
    target.write(rest)


_CUT = "torch.profiler could not write its whole trace; is the disk full?"
"""It says nothing itself."""


def _mapped(file: BinaryIO) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _pause(before: bytes, after: bytes) -> bytes:
    """Write the calls between two windows, as further events."""
    calls = ("cudaProfilerStop", _at(_END, before)), ("cudaProfilerStart", _at(_BEGIN, after))
    thread = f'"pid": {os.getpid()}, "tid": {threading.get_native_id()}, "dur": 0'
    return (
        "".join(
            f',\n  {{"ph": "X", "cat": "cuda_runtime", "name": "{name}", "ts": {ts}, {thread}}}'
            for name, ts in calls
        ).encode()
        + b",\n"
    )


def _at(mark: re.Pattern[bytes], events: bytes) -> str:
    """Give the time of an event, in us as it is written: a float would round it."""
    *_, match = mark.finditer(events)
    return str(match[1], "ascii")


# Exports of Nsight Systems, one for each window of a capture, joined to a single one.
#
# Each counts time from the start of its own session and numbers its texts anew. Between two windows
# stand the calls that end the one and begin the other, as in a joined trace of torch.profiler.


_JOINED_NSYS_EVENTS = (
    *("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "CUDA_GRAPH_", "DIAGNOSTIC_EVENT", "GPU_METRICS"),
)
"""What tables of events begin with; the others describe the machine and the programs."""
_TIMES = ("start", "end", "timestamp", "rawTimestamp")
_TEXTS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "jsonTextId")
"""Columns that refer to StringIds."""
_RANGES = "(59, 60, 70, 71)"
"""NVTX_EVENTS.eventType of ranges: marks have no end either."""


def join_nsys_windows(windows: Sequence[Path], target: Path) -> None:
    """Write the exports as one: what the first says of the machine, and the events of all.

    Raises sqlite3.Error where one is no export; `target` is whole or not there.
    """
    with atomic_files.temp_directory(target) as folder:
        draft = Path(folder) / target.name
        shutil.copyfile(windows[0], draft)
        with closing(sqlite3.connect(draft, isolation_level=None)) as base:
            base.execute("PRAGMA synchronous = OFF")  # a draft that is cut off is made again
            for path in windows[1:]:
                base.execute("ATTACH ? AS other", (str(path),))
                base.execute("BEGIN")
                _append(base)
                base.execute("COMMIT")
                base.execute("DETACH other")
        draft.replace(target)


def _append(base: sqlite3.Connection) -> None:
    """Put the events of the attached export behind those that are there."""
    before, after = _tables(base, "main"), _tables(base, "other")
    _, last = _bounds(base, "main", before)
    first, _ = _bounds(base, "other", after)
    later = max(_session(base, "other") - _session(base, "main"), last + 1 - first)
    for table in _called(before, "NVTX_EVENTS"):  # a range left open is not known to have gone on
        base.execute(
            f'UPDATE "{table}" SET end = {last} WHERE end IS NULL AND eventType IN {_RANGES}'  # noqa: S608 - numbers
        )
    for table in after.keys() - before.keys():
        creation = base.execute("SELECT sql FROM other.sqlite_master WHERE name = ?", (table,))
        base.execute(*creation.fetchone())
    _number_texts(base)
    for table, columns in after.items():
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(_value(column, later) for column in columns)
        base.execute(f'INSERT INTO "{table}" ({names}) SELECT {values} FROM other."{table}"')  # noqa: S608 - nsys's own names
    for table in _called({**before, **after}, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        _joined_nsys_pause(base, table, last, first + later)


def _called(tables: Tables, name: str) -> list[str]:
    """Give the table of a name as this version of nsys spells it: `NAME`, `NAME_V2`, ..."""
    return [table for table in tables if table.startswith(name)]


def _tables(base: sqlite3.Connection, schema: str) -> Tables:
    name_rows = base.execute(f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table'")  # noqa: S608 - ours
    names = [name for (name,) in name_rows if name.startswith(_JOINED_NSYS_EVENTS)]
    return {
        name: [row[1] for row in base.execute(f'PRAGMA {schema}.table_info("{name}")')]
        for name in names
    }


def _bounds(base: sqlite3.Connection, schema: str, tables: Tables) -> tuple[int, int]:
    """Give when the first event began and the last ended; 0 and 0 where there are none."""
    rows = [
        base.execute(f'SELECT min(start), max(coalesce(end, start)) FROM {schema}."{name}"')  # noqa: S608 - nsys's own names
        for name, columns in tables.items()
        if {"start", "end"} <= {*columns}
    ]
    bounds = [(low, high) for row in rows for low, high in row if low is not None]
    if not bounds:
        return 0, 0
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _session(base: sqlite3.Connection, schema: str) -> int:
    """Give when times of an export count from, ns since 1970; 0 where it does not say (2021)."""
    try:
        epochs = base.execute(f"SELECT utcEpochNs FROM {schema}.TARGET_INFO_SESSION_START_TIME")  # noqa: S608 - ours
    except sqlite3.OperationalError:
        return 0
    return next((time for (time,) in epochs if time is not None), 0)


def _number_texts(base: sqlite3.Connection) -> None:
    """Give each text of the attached export the number of the same text here, else a new one."""
    base.execute("DROP TABLE IF EXISTS temp.texts")
    base.execute("CREATE TEMP TABLE texts (theirs INTEGER PRIMARY KEY, ours INTEGER)")
    base.execute(
        "INSERT INTO StringIds (id, value)"
        " SELECT row_number() OVER () + (SELECT coalesce(max(id), 0) FROM main.StringIds), value"
        " FROM (SELECT DISTINCT value FROM other.StringIds"
        "       WHERE value NOT IN (SELECT value FROM main.StringIds))"
    )
    base.execute(
        "INSERT INTO texts SELECT theirs.id, min(ours.id)"
        " FROM other.StringIds theirs JOIN main.StringIds ours USING (value) GROUP BY theirs.id"
    )


def _value(column: str, later: int) -> str:
    """Give the SQL for a column's value as it is to be in the joined file."""
    if column in _TIMES:
        return f'"{column}" + {later}'
    if column in _TEXTS:
        return f'(SELECT ours FROM texts WHERE theirs = "{column}")'  # noqa: S608 - of _TEXTS
    return f'"{column}"'


def _joined_nsys_pause(base: sqlite3.Connection, calls: str, last: int, first: int) -> None:
    """Write the calls between two windows, for each process that calls anything."""
    for name, time in (("cudaProfilerStop", last), ("cudaProfilerStart", first)):
        called = {"name": name, "time": time}
        base.execute(
            "INSERT INTO StringIds (id, value) SELECT (SELECT max(id) + 1 FROM StringIds), :name"
            " WHERE NOT EXISTS (SELECT 1 FROM StringIds WHERE value = :name)",
            called,
        )
        base.execute(
            f"INSERT INTO {calls} (start, end, eventClass, globalTid, nameId, returnValue)"  # noqa: S608 - ours
            " SELECT :time, :time, 0, min(globalTid),"
            " (SELECT id FROM StringIds WHERE value = :name), 0"
            f" FROM {calls} GROUP BY globalTid >> 24",
            called,
        )
