"""Every column of every row as Parquet; each column carries its meaning as metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from pyprof.frame import meanings
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "rows"
SUFFIXES = (".parquet", ".pq")

_COMPRESSION = "zstd"


def write(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    """Write the table of `pyprof.load`, for any reader of Parquet."""
    rows = next(tables)
    schema = pa.schema(
        [
            field.with_metadata({"description": meaning.help, "unit": meaning.unit})
            for field, meaning in zip(rows.schema, meanings(), strict=True)
        ],
        {"writer": f"pyprof {__version__} export"},
    )
    with parquet.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        writer.write_table(rows.cast(schema))
        for rows in tables:
            writer.write_table(rows.cast(schema))
