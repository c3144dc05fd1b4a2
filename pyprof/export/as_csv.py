"""Every column of every row, with the names of `pyprof.load`, as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "rows"
SUFFIXES = (".csv",)
OPTIONS = ("raw",)


def write(tables: Iterator[pa.Table], file: BinaryIO, *, raw: bool = False) -> None:
    """Write RFC 4180; unknown values are empty, shapes are written as `2x3 4x3`.

    `raw`: keep texts that spreadsheets take for formulas as they are.
    """
    for number, rows in enumerate(tables):
        formatted = pa.table({name: _format_lists(rows.column(name)) for name in rows.column_names})
        written = formatted if raw else sanitize.escape_formulas(formatted)
        csv.write_csv(written, file, csv.WriteOptions(include_header=number == 0))


def _format_lists(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if not pa.types.is_list(column.type):
        return column
    lists = column.combine_chunks()
    if pa.types.is_list(lists.type.value_type):
        return _join_items(lists, _join_items(lists.values, lists.values.values, "x"), " ")
    return _join_items(lists, lists.values, " ")


def _join_items(lists: pa.ListArray, values: pa.Array, separator: str) -> pa.Array:
    texts = pc.fill_null(values.cast(pa.string()), "")
    text_lists = pa.ListArray.from_arrays(lists.offsets, texts, mask=lists.is_null())
    return pc.binary_join(text_lists, separator)
