"""Every column of every row on its way into a file: some rows at a time, numbered on by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.prof.frame import as_arrow, numbered
from pyprof.prof.running import run_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyprof.parse.records import Records
    from pyprof.prof.columns import Column
    from pyprof.prof.table import Table
    from pyprof.report.exporters import Part

_ROWS, _TEXT_BYTES = 1 << 17, 1 << 27
"""Written out at once, at most."""
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


def tables(table: Table) -> Iterator[pa.Table]:
    """Give the columns of `pyprof.load`, some rows at a time; one table without rows for none."""
    return _spelt(_compact(table))


def keep(table: Table, file: BinaryIO) -> None:
    """Write the rows of a capture, to be read by `kept`."""
    rows = _compact(table)
    with pa.ipc.new_stream(file, rows.schema, options=_OPTIONS) as stream:
        stream.write_table(rows)


def kept(parts: Iterable[Part]) -> Iterator[pa.Table]:
    """Give the rows of captures as `tables` does, `idx` and `opid` running on."""
    for rows in run_on((_read(part.path), part.counts) for part in parts):
        yield from _spelt(rows)


def _read(path: Path) -> pa.Table:
    with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _compact(table: Table) -> pa.Table:
    """Hold texts and lists as numbers: spelt out, those of all rows are large."""
    return as_arrow(table, _recorded, _held)


def _recorded(records: Records, name: str) -> pa.Array:
    is_text = pa.types.is_string(schema.PARQUET.field(name).type)
    return records.coded(name).numbered() if is_text else numbered(records, name)


def _held(column: Column, table: Table) -> pa.Array:
    values = column.held(table)
    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def _spelt(rows: pa.Table) -> Iterator[pa.Table]:
    at_once = _rows_at_once(rows)
    for start in range(0, rows.num_rows or 1, at_once):
        part = rows.slice(start, at_once)
        yield pa.table([*map(_spelt_out, part.columns)], part.column_names)


def _spelt_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return column
    parts = [chunk.dictionary.take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(parts, column.type.value_type)


def _rows_at_once(rows: pa.Table) -> int:
    """Choose how many rows to write at once, so that their texts stay small, however long."""
    size = sum(map(_text_bytes, rows.columns))
    fitting: int = _TEXT_BYTES * rows.num_rows // max(1, size)
    return max(1, min(_ROWS, fitting))


def _text_bytes(column: pa.ChunkedArray) -> int:
    if not pa.types.is_dictionary(column.type) or not pa.types.is_string(column.type.value_type):
        return 0
    size = 0
    for chunk in column.chunks:
        used = np.bincount(chunk.indices.drop_null(), minlength=len(chunk.dictionary))
        size += int(used @ np.asarray(pc.binary_length(chunk.dictionary)))
    return size
