"""Every column of every row as Parquet; each column carries its meaning as metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from pyprof import __version__
from pyprof.prof.frame import as_arrow, meanings

if TYPE_CHECKING:
    from pyprof.report.source import Source

SUFFIXES = (".parquet", ".pq")


def write(source: Source, file: BinaryIO) -> None:
    """Write the table that `pyprof.load` gives, for any reader of Parquet."""
    rows = as_arrow(source.table)
    described = zip(rows.schema, meanings(), strict=True)
    schema = pa.schema(
        [
            field.with_metadata({"description": meaning.help, "unit": meaning.unit})
            for field, meaning in described
        ]
    )
    rows = rows.cast(schema.with_metadata({"writer": f"pyprof {__version__} export"}))
    parquet.write_table(rows, file, compression="zstd")
