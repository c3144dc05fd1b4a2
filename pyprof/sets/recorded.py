"""The rank that a file of parsed records says; the one thing that a set reads of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyprof.readers import read_head

if TYPE_CHECKING:
    from pathlib import Path

_PARQUET = b"PAR1"


def rank_of(path: Path) -> int | None:
    """Give the rank that all rows of a Parquet file have, or the first of dict lines.

    None where it says none, or is no file of records. Raises CaptureError where nothing is there.
    """
    if read_head(path).startswith(_PARQUET):
        return _in_columns(path)
    with path.open("rb") as file:
        return _in_line(file.readline(_LONGEST))


_LONGEST = 1 << 20
"""Bytes of a dict line; what has no line end for longer is no such file."""


def _in_columns(path: Path) -> int | None:
    try:
        found = pq.ParquetFile(path).read(["rank"])
        ranks = pc.unique(found["rank"]).to_pylist() if found.num_columns else []
    except (pa.ArrowException, OSError):
        return None
    return ranks[0] if len(ranks) == 1 and isinstance(ranks[0], int) else None


def _in_line(line: bytes) -> int | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    rank = found.get("rank") if isinstance(found, dict) else None
    return rank if isinstance(rank, int) else None
