"""Columns of `prof` as JSON: their names with units, several numbers in one text as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof import group, params
from pyprof.prof.columns.standard import COLUMNS, FLOAT, INT, NUMBERS, Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_UNITS = {
    "ns": "ns",
    "%": "percent",
    "byte": "bytes",
    "FLOP": "flops",
    "TFLOP/s": "tflops",
    "GB/s": "gbs",
    "FLOP/byte": "flop_per_byte",
}
_TYPES = {INT: "integer", FLOAT: "number"}


def key(column: Column) -> str:
    """Return the name of a column with its unit, unless it has one: `sil_ns`."""
    unit = _UNITS.get(column.unit, column.unit)
    return column.name if not unit or unit in column.name.split("_") else f"{column.name}_{unit}"


def by_key() -> Mapping[str, Column]:
    """Return every column that a row, or a group of rows, can have."""
    measures = [*params.measures(), *group.measures()]
    return {key(column): column for column in (*measures, *COLUMNS.values())}


def form(column: Column) -> dict[str, Any]:
    """Describe the values of a column as JSON Schema does."""
    if column.kind == NUMBERS:
        return {"type": ["array", "null"], "items": {"type": "integer"}}
    return {"type": [_TYPES.get(column.kind, "string"), "null"]}


def converted(columns: Sequence[Column], tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables under these names; texts of several numbers become lists."""
    names = [key(column) for column in columns]
    for rows in tables:
        values = [
            _lists(rows.column(column.name)) if column.kind == NUMBERS else rows.column(column.name)
            for column in columns
        ]
        yield pa.table(values, names)


def _lists(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.split_pattern(texts, ",").cast(pa.list_(pa.int64()))
