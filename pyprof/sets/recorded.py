"""The rank that a file of parsed records says, or its processes; all that a set reads of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyprof import schema
from pyprof.readers import read_head

if TYPE_CHECKING:
    from pathlib import Path

_PARQUET = b"PAR1"


def identity(path: Path) -> schema.Identity:
    """Give the rank that all rows of a Parquet file have, or the first of dict lines.

    Where rows of a Parquet file say none, their processes, as for the capture they were parsed
    from. Nothing where it is no file of records. Raises CaptureError where nothing is there.
    """
    if read_head(path).startswith(_PARQUET):
        return _in_columns(path)
    with path.open("rb") as file:
        return schema.Identity(_in_line(file.readline(_LONGEST)))


_LONGEST = 1 << 20
"""Bytes of a dict line; what has no line end for longer is no such file."""


def _in_columns(path: Path) -> schema.Identity:
    try:
        file = pq.ParquetFile(path)
        found = file.read(["rank"])
        ranks = pc.unique(found["rank"]).to_pylist() if found.num_columns else [None]
        if ranks == [None]:
            return schema.Identity(pids=_processes(file.read(["pid", "device", "kind"])))
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):  # reading it will say so
        return schema.Identity()
    return schema.Identity(_rank(ranks[0]) if len(ranks) == 1 else None)


def _rank(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < _MOST_RANKS else None


_MOST_RANKS = 1 << 31


def _processes(rows: pa.Table) -> tuple[int, ...]:
    """Give the processes with GPU work, by device."""
    if rows.num_columns < 3:  # noqa: PLR2004 - some other table
        return ()
    rows = rows.filter(pc.not_equal(rows["kind"].cast(pa.string()), schema.KINDS[schema.CPU]))
    first = rows.group_by("pid").aggregate([("device", "min")]).drop_null()
    first = first.sort_by([("device_min", "ascending"), ("pid", "ascending")])
    return tuple(first["pid"].to_pylist())


def _in_line(line: bytes) -> int | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return _rank(found.get("rank")) if isinstance(found, dict) else None
