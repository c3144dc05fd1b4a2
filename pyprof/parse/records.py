"""Records: one per activity, held by column, for a dict file, Parquet, a frame or a report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from pyprof import schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of few distinct values: their list, and for each row the index into it.

    Index -1 stands for null. Values are plain Python: texts, lists of texts.
    """

    index: NDArray[np.int64]
    values: list[Any]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: NDArray[np.int64]) -> Coded:
        """Choose rows."""
        return Coded(self.index[rows], self.values)

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """Write every row's value out."""
        values = pa.array(self.values, kind)
        return values.take(pa.array(self.index, mask=self.index < 0))


Column: TypeAlias = "pa.Array | pa.ChunkedArray | Coded"


@dataclass(frozen=True, slots=True)
class Records:
    """The columns of `schema.RECORD`; one that is not here is null throughout."""

    rows: int
    columns: Mapping[str, Column]
    devices: pa.Table = field(default_factory=schema.DEVICES.empty_table)
    """The GPUs, where the source describes them."""
    warnings: tuple[str, ...] = ()

    def arrow(self, name: str) -> pa.Array:
        """Give a column as one Arrow array of its type in `schema.RECORD`."""
        kind = schema.RECORD.field(name).type
        column = self.columns.get(name)
        if column is None:
            return pa.nulls(self.rows, kind)
        if isinstance(column, Coded):
            return column.to_arrow(kind)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        return column if column.type == kind else column.cast(kind)

    def numpy(self, name: str, absent: int = -1) -> NDArray[np.int64]:
        """Give an integer column as NumPy, with `absent` for null."""
        return np.asarray(self.arrow(name).fill_null(absent).to_numpy())

    def coded(self, name: str) -> Coded:
        """Give a column as its distinct values and an index per row."""
        column = self.columns.get(name)
        return column if isinstance(column, Coded) else encode(self.arrow(name))

    def table(self) -> pa.Table:
        """Give all columns as an Arrow table, as Parquet has it."""
        return pa.table({name: self.arrow(name) for name in schema.RECORD.names}, schema.RECORD)

    def slice(self, start: int, length: int) -> Records:
        """Choose consecutive rows."""
        return self.take(np.arange(start, min(start + length, self.rows)))

    def take(self, rows: NDArray[np.int64]) -> Records:
        """Choose rows."""
        index = pa.array(rows)
        columns = {
            name: column.take(rows) if isinstance(column, Coded) else column.take(index)
            for name, column in self.columns.items()
        }
        return Records(len(rows), columns, self.devices, self.warnings)


_SEPARATOR, _INNER_SEPARATOR = "\x1f", "\x1e"


def encode(column: pa.Array) -> Coded:
    """Find the distinct values of a column of texts, numbers or lists of texts or numbers."""
    key = _joined(column) if pa.types.is_list(column.type) else column
    found = key.dictionary_encode()
    index = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    used, first = np.unique(index, return_index=True)
    values = column.take(pa.array(first[used >= 0])).to_pylist()
    return Coded(index, values)


def _joined(column: pa.Array, separator: str = _SEPARATOR) -> pa.Array:
    """Make one text of each list, different for different lists."""
    import pyarrow.compute as pc  # noqa: PLC0415 - costs time to load

    if pa.types.is_list(column.type.value_type):
        inner = _joined(column.values, _INNER_SEPARATOR)
        column = pa.ListArray.from_arrays(column.offsets, inner, mask=column.is_null())
    values = column.values.cast(pa.string())
    tag: object = "+"
    if pc.any(pc.match_substring(values, separator)).as_py():
        tag = pc.binary_length(values).cast(pa.string()).fill_null("")  # lengths tell texts apart
    tagged = pc.binary_join_element_wise(tag, values.fill_null(""), "+")
    return pc.binary_join(
        pa.ListArray.from_arrays(column.offsets, tagged, mask=column.is_null()), separator
    )


def concat_coded(parts: Sequence[Coded]) -> Coded:
    """Put coded columns under each other, their values numbered anew."""
    numbers: dict[Any, int] = {}
    values: list[Any] = []
    indices = []
    for part in parts:
        place = np.full(len(part.values) + 1, -1)
        for number, value in enumerate(part.values):
            key = _hashable(value)
            if key not in numbers:
                numbers[key] = len(values)
                values.append(value)
            place[number] = numbers[key]
        indices.append(place[part.index])
    return Coded(np.concatenate(indices), values)


def _hashable(value: Any) -> Any:  # noqa: ANN401 - texts, numbers, lists of them
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
