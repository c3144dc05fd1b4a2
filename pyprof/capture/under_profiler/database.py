"""What a profiler's database holds, without reading it as a capture; its private contents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
"""Tables only: a view may be a query that never ends."""


def connect(path: Path) -> closing[sqlite3.Connection]:
    """Open a database, which is never written, until the `with` ends."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True))


def tables(path: Path) -> frozenset[str]:
    """Return the names of the tables; none if the file is not an SQLite database."""
    try:
        with connect(path) as base:
            return frozenset(str(row[0]) for row in base.execute(_TABLES))
    except sqlite3.Error:
        return frozenset()


def nonempty_tables(path: Path, names: Iterable[str]) -> list[str]:
    """Return those of the tables that have rows; none if the file is not an SQLite database."""
    present = tables(path)
    try:
        with connect(path) as base:
            return [name for name in names if name in present and _has_rows(base, name)]
    except sqlite3.Error:
        return []


def _has_rows(base: sqlite3.Connection, table: str) -> bool:
    quoted = table.replace('"', '""')
    return base.execute(f'SELECT 1 FROM "{quoted}" LIMIT 1').fetchone() is not None  # noqa: S608 - quoted


_PRIVATE = {
    "TARGET_INFO_SYSTEM_ENV": "the machine and its environment, which may include tokens",
    "PROCESSES": "command lines",
    "ANALYSIS_DETAILS": "the capture's own command",
    "TARGET_INFO_SESSION_START_TIME": "when it was recorded",
    "rocpd_info_process": "the environment, which may include tokens, and the command line",
    "rocpd_info_node": "the machine's name and id",
}
"""Tables, and what they reveal. In rocprofv3's databases the id of a recording follows the name."""
_ROCPD = "rocpd_"


def private_content(path: Path) -> list[str]:
    """Return what a file reveals about its origin. Values are not read."""
    names = {
        table: name
        for table in tables(path)
        for name in _PRIVATE
        if table == name or (name.startswith(_ROCPD) and table.startswith(f"{name}_"))
    }
    filled_names = {names[table] for table in nonempty_tables(path, sorted(names))}
    return [
        f"before sharing the file: it contains {name}: {what}"
        for name, what in _PRIVATE.items()
        if name in filled_names
    ]
