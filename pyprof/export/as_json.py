"""Every column of every row as JSON: a list of objects, null for unknown values."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

KIND = "rows"
SUFFIXES = (".json",)

_BATCH_ROWS = 1 << 14


def write(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    """Write one object per line, with the column names of `pyprof.load`."""
    file.write(b"[\n")
    separator = b""
    for rows in tables:
        for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
            for row in batch.to_pylist():
                file.write(separator + orjson.dumps(row))
                separator = b",\n"
    file.write(b"\n]\n")
