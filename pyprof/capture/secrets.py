"""What a capture file holds that one may not want to share: environment, host, command line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TABLES = {
    "TARGET_INFO_SYSTEM_ENV": "the machine and its environment, which can hold tokens",
    "PROCESSES": "command lines",
    "ANALYSIS_DETAILS": "the capture's own command",
    "TARGET_INFO_SESSION_START_TIME": "when it was made",
}
"""Tables of nsys's export, and what they tell."""

_SQLITE = b"SQLite format 3\0"


def inside(path: Path) -> list[str]:
    """Say what a file tells of where it was made. Values are not read."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            present = {row[0] for row in base.execute("SELECT name FROM sqlite_master")}
            held = [
                f"{table}: {what}"
                for table, what in _TABLES.items()
                if table in present and base.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 - our names
            ]
    except sqlite3.Error:
        return []
    return [f"before sharing the file: it holds {text}" for text in held]
