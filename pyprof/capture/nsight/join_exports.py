"""Joins exports of Nsight Systems, one per recording window, into a single one.

Between two windows are the profiler calls that end one and begin the other, as in a joined trace of
torch.profiler.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.process import atomic_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    Tables = dict[str, list[str]]
    """Columns by table."""

_JOINED_NSYS_EVENTS = (
    *("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "CUDA_GRAPH_", "DIAGNOSTIC_EVENT", "GPU_METRICS"),
)
"""Prefixes of event tables; other tables describe the machine and the programs."""
_TIMES = ("start", "end", "timestamp", "rawTimestamp")
"""Columns of times, which count from the start of the session."""
_TEXTS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "jsonTextId")
"""Columns that refer to StringIds."""
_RANGES = "(59, 60, 70, 71)"
"""NVTX_EVENTS.eventType of ranges; marks have no end either."""


def join_nsys_windows(windows: Sequence[Path], target: Path) -> None:
    """Write exports of nsys as one: the first's description, and the events of all.

    Each counts time from the start of its own session and has its own numbers for texts. Raises
    sqlite3.Error if one is not an export; `target` appears only when complete.
    """
    with atomic_files.temp_directory(target) as folder:
        draft = Path(folder) / target.name
        shutil.copyfile(windows[0], draft)
        with closing(sqlite3.connect(draft, isolation_level=None)) as base:
            base.execute("PRAGMA synchronous = OFF")  # a temporary file
            for path in windows[1:]:
                base.execute("ATTACH ? AS other", (str(path),))
                base.execute("BEGIN")
                _append(base)
                base.execute("COMMIT")
                base.execute("DETACH other")
        draft.replace(target)


def _append(base: sqlite3.Connection) -> None:
    before, after = _tables(base, "main"), _tables(base, "other")
    _, last = _bounds(base, "main", before)
    first, _ = _bounds(base, "other", after)
    begins, began = _session_start_ns(base, "other"), _session_start_ns(base, "main")
    later = max(begins - began, last + 1 - first)
    # a range left open is not known to have gone on
    for table in _find_versions(before, "NVTX_EVENTS"):
        is_open = f"end IS NULL AND eventType IN {_RANGES}"
        base.execute(f'UPDATE "{table}" SET end = {last} WHERE {is_open}')  # noqa: S608 - numbers
    for table in after.keys() - before.keys():
        creation = base.execute("SELECT sql FROM other.sqlite_master WHERE name = ?", (table,))
        base.execute(*creation.fetchone())
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
    for table, columns in after.items():
        names = ", ".join(f'"{column}"' for column in columns)
        values = ", ".join(_value_sql(column, later) for column in columns)
        base.execute(f'INSERT INTO "{table}" ({names}) SELECT {values} FROM other."{table}"')  # noqa: S608 - nsys's own names
    for table in _find_versions({**before, **after}, "CUPTI_ACTIVITY_KIND_RUNTIME"):
        _add_pause(base, table, last, first + later)


def _find_versions(tables: Tables, name: str) -> list[str]:
    """Return the tables of a name in any version of nsys: `NAME`, `NAME_V2`, ..."""
    return [table for table in tables if table.startswith(name)]


def _tables(base: sqlite3.Connection, schema: str) -> Tables:
    name_rows = base.execute(f"SELECT name FROM {schema}.sqlite_master WHERE type = 'table'")  # noqa: S608 - ours
    names = [name for (name,) in name_rows if name.startswith(_JOINED_NSYS_EVENTS)]
    return {
        name: [row[1] for row in base.execute(f'PRAGMA {schema}.table_info("{name}")')]
        for name in names
    }


def _bounds(base: sqlite3.Connection, schema: str, tables: Tables) -> tuple[int, int]:
    """Return the first start and last end of all events; 0 and 0 without any."""
    rows = [
        base.execute(f'SELECT min(start), max(coalesce(end, start)) FROM {schema}."{name}"')  # noqa: S608 - nsys's own names
        for name, columns in tables.items()
        if {"start", "end"} <= {*columns}
    ]
    bounds = [(low, high) for row in rows for low, high in row if low is not None]
    if not bounds:
        return 0, 0
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _session_start_ns(base: sqlite3.Connection, schema: str) -> int:
    """Return the start of an export's session, ns since 1970; 0 if not recorded (2021)."""
    try:
        epochs = base.execute(f"SELECT utcEpochNs FROM {schema}.TARGET_INFO_SESSION_START_TIME")  # noqa: S608 - ours
    except sqlite3.OperationalError:
        return 0
    return next((time for (time,) in epochs if time is not None), 0)


def _value_sql(column: str, later: int) -> str:
    if column in _TIMES:
        return f'"{column}" + {later}'
    if column in _TEXTS:
        return f'(SELECT ours FROM texts WHERE theirs = "{column}")'  # noqa: S608 - of _TEXTS
    return f'"{column}"'


def _add_pause(base: sqlite3.Connection, calls: str, last: int, first: int) -> None:
    """Add the calls between two windows, for each process that calls anything."""
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
