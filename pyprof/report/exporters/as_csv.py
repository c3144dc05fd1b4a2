"""Every column of every row, under the names that `pyprof.load` gives them, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof.prof.frame import as_arrow
from pyprof.report.exporters import as_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.report.exporters import Part
    from pyprof.report.source import Source

SUFFIXES = (".csv",)


def write(source: Source, file: BinaryIO) -> None:
    """Write RFC 4180; what is not known is empty, shapes are written as `2x3 4x3`."""
    csv.write_csv(_spelt(as_arrow(source.table)), file)


part = as_parquet.write


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Put the lines of captures under each other, below one header."""
    for number, batch in enumerate(as_parquet.batches(parts)):
        csv.write_csv(_spelt(batch), file, csv.WriteOptions(include_header=not number))


def _spelt(found: pa.Table) -> pa.Table:
    return pa.table({name: _texts(found.column(name)) for name in found.column_names})


def _texts(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if not pa.types.is_list(column.type):
        return column
    lists = column.combine_chunks()
    if pa.types.is_list(lists.type.value_type):
        return _joined(lists, _joined(lists.values, lists.values.values, "x"), " ")
    return _joined(lists, lists.values, " ")


def _joined(lists: pa.ListArray, values: pa.Array, separator: str) -> pa.Array:
    texts = pc.fill_null(values.cast(pa.string()), "")
    whole = pa.ListArray.from_arrays(lists.offsets, texts, mask=lists.is_null())
    return pc.binary_join(whole, separator)
