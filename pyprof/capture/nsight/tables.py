"""Quick queries of a capture's database, without reading it as a capture; its private contents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
"""Tables only: a view may be a query that never ends."""


def filled(path: Path, tables: Iterable[str]) -> list[str]:
    """Return the tables that have rows; none if the file is not an SQLite database."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            present = {row[0] for row in base.execute(_TABLES)}
            return [
                table
                for table in tables
                if table in present and base.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 - our names
            ]
    except sqlite3.Error:
        return []


_NODES = "CUDA_GRAPH_NODE_EVENTS"
_UNSEEN = f"""
SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId > 0 AND graphNodeId NOT IN (
  SELECT graphNodeId FROM {_NODES} WHERE coalesce(originalGraphNodeId, 0) = 0
    OR originalGraphNodeId IN (SELECT graphNodeId FROM {_NODES}))
"""  # noqa: S608 - our own name


def count_unseen_kernels(path: Path) -> int:
    """Count the kernels in an nsys export whose graph was captured before recording began."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            query = _UNSEEN
            if _NODES not in {row[0] for row in base.execute(_TABLES)}:
                query = _UNSEEN.partition(" AND ")[0]
            return int(base.execute(query).fetchone()[0])
    except sqlite3.Error:  # no such column, in old exports
        return 0


_LAUNCHED = """
SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON StringIds.id = nameId
WHERE value LIKE 'cu%LaunchKernel%' OR value LIKE 'cu%GraphLaunch%'
"""


def launches(path: Path) -> int:
    """Count the launches of kernels and graphs in an nsys export."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            return int(base.execute(_LAUNCHED).fetchone()[0])
    except sqlite3.Error:  # no such table
        return 0


_PRIVATE = {
    "TARGET_INFO_SYSTEM_ENV": "the machine and its environment, which may include tokens",
    "PROCESSES": "command lines",
    "ANALYSIS_DETAILS": "the capture's own command",
    "TARGET_INFO_SESSION_START_TIME": "when it was recorded",
}
"""Tables of nsys's export, and what they reveal."""
_PRIVATE_ROCPD = {
    "rocpd_info_process": "the environment, which may include tokens, and the command line",
    "rocpd_info_node": "the machine's name and id",
}
"""Those of rocprofv3's database, before the id of a recording."""


def private(path: Path) -> list[str]:
    """Return what a file reveals about its origin. Values are not read."""
    revealed = {table: _PRIVATE[table] for table in filled(path, _PRIVATE)}
    for table in _with_prefix(path, _PRIVATE_ROCPD):
        prefix = next(each for each in _PRIVATE_ROCPD if table.startswith(each))
        revealed.setdefault(prefix, _PRIVATE_ROCPD[prefix])
    return [
        f"before sharing the file: it contains {table}: {what}" for table, what in revealed.items()
    ]


def _with_prefix(path: Path, prefixes: Iterable[str]) -> list[str]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as base:
            names = [str(row[0]) for row in base.execute(_TABLES)]
    except sqlite3.Error:
        return []
    return [name for name in names if name.startswith(tuple(prefixes))]
