"""Every column of every row, under the names that `pyprof.load` gives them, as CSV."""

from __future__ import annotations

from shutil import copyfileobj
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof.prof.frame import as_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.report.exporters import Part
    from pyprof.report.source import Source

SUFFIXES = (".csv",)


def write(source: Source, file: BinaryIO) -> None:
    """Write RFC 4180; what is not known is empty, shapes are written as `2x3 4x3`."""
    rows = as_arrow(source.table)
    spelt = {name: _spelt(rows.column(name)) for name in rows.column_names}
    csv.write_csv(pa.table(spelt), file)


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Put the lines of captures under each other, below one header."""
    for number, part in enumerate(parts):
        with part.path.open("rb") as written:
            if number:
                written.readline()
            copyfileobj(written, file)


def _spelt(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
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
