"""Every column of every row as Parquet; each column carries its meaning as metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from pyarrow import parquet

from pyprof import __version__
from pyprof.prof.frame import as_arrow, meanings, numbered
from pyprof.prof.running import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.report.exporters import Part
    from pyprof.report.source import Source

SUFFIXES = (".parquet", ".pq")

_ROWS = 1 << 17
_COMPRESSION = "zstd"


def write(source: Source, file: BinaryIO) -> None:
    """Write the table that `pyprof.load` gives, for any reader of Parquet.

    Until they are written, texts and lists are numbers: spelt out, those of all rows are large.
    """
    rows = as_arrow(source.table, numbered, _numbered_texts)
    described = zip(rows.schema, meanings(), strict=True)
    schema = pa.schema(
        [
            pa.field(field.name, _spelt_type(field.type)).with_metadata(
                {"description": meaning.help, "unit": meaning.unit}
            )
            for field, meaning in described
        ],
        {"writer": f"pyprof {__version__} export"},
    )
    with parquet.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for start in range(0, rows.num_rows, _ROWS):
            some = rows.slice(start, _ROWS)
            writer.write_table(pa.table([*map(_spelt, some.columns)], schema=schema))


part = write


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Put the rows of captures under each other."""
    schema = parquet.read_schema(parts[0].path)
    with parquet.ParquetWriter(file, schema, compression=_COMPRESSION) as writer:
        for rows in batches(parts):
            writer.write_table(rows)


def batches(parts: Sequence[Part]) -> Iterator[pa.Table]:
    """Give the rows of captures, some at a time; their numbers run on from rank to rank."""
    so_far = Counts()
    for each in parts:
        with parquet.ParquetFile(each.path) as written:
            for number in range(written.num_row_groups):
                yield so_far.before(written.read_row_group(number))
        so_far = so_far.plus(each.counts)


def _numbered_texts(values: pa.Array) -> pa.Array:
    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def _spelt_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _spelt(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    parts = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(parts, column.type.value_type)
