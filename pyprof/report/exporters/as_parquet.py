"""Every column of every row as Parquet; each column carries its meaning as metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from pyprof import __version__
from pyprof.prof.columns import COLUMNS
from pyprof.prof.frame import as_arrow

if TYPE_CHECKING:
    from pyprof.report.source import Source

SUFFIXES = (".parquet", ".pq")


def write(source: Source, file: BinaryIO) -> None:
    """Write the table that `pyprof.load` gives, for any reader of Parquet."""
    rows = as_arrow(source.table)
    schema = pa.schema([_described(field) for field in rows.schema])
    described = rows.cast(schema.with_metadata({"writer": f"pyprof {__version__} export"}))
    parquet.write_table(described, file, compression="zstd")


def _described(field: pa.Field) -> pa.Field:
    column = COLUMNS.get(field.name)
    return field.with_metadata({"description": column.help}) if column else field
