"""Records: one per activity, held by column, for a dict file, Parquet, a frame or a report."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import first_index, lists
from pyprof.marker import templates as texts_with_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray


@dataclass(frozen=True, slots=True)
class DictionaryColumn:
    """A column of few distinct values: their list, and for each row the index into it.

    Index -1 stands for null. Values are plain Python: texts, lists of texts, op calls.
    """

    index: IntArray
    """Held as int32, because many columns have millions of rows: widen before multiplying."""
    values: list[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", self.index.astype(np.int32, copy=False))

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> DictionaryColumn:
        """Choose rows."""
        return DictionaryColumn(self.index[rows], self.values)

    def at(self, row: int) -> Any:  # noqa: ANN401 - of any type
        """Return the value of a row; None for null."""
        index = int(self.index[row])
        return self.values[index] if index >= 0 else None

    def map(self, function: Callable[[Any], Any]) -> DictionaryColumn:
        """Replace each distinct value by what a function returns for it."""
        return DictionaryColumn(self.index, [*map(function, self.values)])

    def matches(self, test: Callable[[Any], bool] = bool) -> NDArray[np.bool_]:
        """Mask of the rows whose value passes a test; a null does not."""
        return np.array([*(bool(test(value)) for value in self.values), False]).take(self.index)

    def is_in(self, *values: object) -> NDArray[np.bool_]:
        """Mask of the rows with one of these values; None stands for null."""
        return self.numpy(lambda value: value in values, None in values)

    def numpy(self, function: Callable[[Any], Any], absent: Any) -> NDArray[Any]:  # noqa: ANN401 - as above
        """Array of what a function returns for each row's value; `absent` for null."""
        return np.array([*map(function, self.values), absent]).take(self.index)

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """Return the value of every row, without dictionary encoding."""
        values = pa.array(self.values, kind)
        return values.take(self.arrow_index())

    def dictionary_array(self) -> pa.DictionaryArray:
        """Return texts as an Arrow dictionary array of distinct values."""
        return pa.array(self.values, pa.string()).dictionary_encode().take(self.arrow_index())

    def arrow_index(self, start: int = 0, length: int | None = None) -> pa.Array:
        """Return the index of all or some rows, with null for -1."""
        index = self.index[start : None if length is None else start + length]
        absent = index < 0
        return pa.array(index, mask=absent if absent.any() else None)


Column: TypeAlias = "pa.Array | pa.ChunkedArray | DictionaryColumn"

NUMBERED = pa.list_(texts_with_numbers.NUMBERED)
"""The type of a column of lists of texts that are assembled only when they are written."""


@dataclass(frozen=True, slots=True)
class Records:
    """The columns of `schema.PARQUET`; one that is not here is null throughout."""

    rows: int
    columns: Mapping[str, Column]
    devices: pa.Table = field(default_factory=schema.DEVICES.empty_table)
    """The GPUs, where the source describes them."""
    warnings: tuple[str, ...] = ()

    def arrow(self, name: str) -> pa.Array:
        """Return a column as one Arrow array of its type in `schema.RECORD`."""
        kind = schema.PARQUET.field(name).type
        column = self.columns.get(name)
        if column is None:
            return pa.nulls(self.rows, kind)
        if isinstance(column, DictionaryColumn):
            return column.to_arrow(kind)
        column = one_chunk(column)
        if column.type == NUMBERED:
            return plain_lists(column)
        return column if column.type == kind else column.cast(kind)

    def cut(self, name: str) -> Callable[[int, int], pa.Array]:
        """Return a function that slices a column; the type is that of `arrow`.

        Texts that are stored as templates and numbers are assembled for these rows only.
        """
        texts = self.template_lists(name)
        if texts is not None:
            return lambda start, length: plain_lists(texts.slice(start, length))
        column = self.columns.get(name)
        if column is None or isinstance(column, DictionaryColumn):
            cut_plain: Callable[[int, int], pa.Array] = self.arrow(name).slice
            return cut_plain
        values, kind = one_chunk(column), schema.PARQUET.field(name).type
        return lambda start, length: values.slice(start, length).cast(kind)

    def template_lists(self, name: str) -> pa.ListArray | None:
        """Return a column of lists of texts that is stored as `NUMBERED`; None for another."""
        column = self.columns.get(name)
        if column is None or isinstance(column, DictionaryColumn) or column.type != NUMBERED:
            return None
        return one_chunk(column)

    def text_bytes(self, name: str) -> int:
        """Estimate the length of all texts of a column stored as `NUMBERED`; 0 for any other."""
        texts = self.template_lists(name)
        return 0 if texts is None else texts_with_numbers.length(texts.flatten())

    def templates(self) -> DictionaryColumn:
        """Return the texts of PyTorch's own ranges without their numbers."""
        if "seqTemplate" in self.columns:
            return self.dictionary("seqTemplate")
        column = self.template_lists("seqMarker")
        column = split_numbers(self.arrow("seqMarker")) if column is None else column
        return encode(_map_texts(column, lambda texts: texts.field("text")))

    def numpy(self, name: str, absent: int = -1) -> NDArray[np.int64]:
        """Return an integer column as NumPy, with `absent` for null.

        A row of unknown time counts as taking no time, so that it changes no sum and no union of
        intervals: its duration is 0, it ends when it starts, and it starts at its launch, within
        the bounds of the others.
        """
        if name not in self.columns and name not in _TIMED:
            return np.broadcast_to(np.int64(absent), self.rows)
        column = self.arrow(name)
        if not column.null_count:
            return np.asarray(column.to_numpy())
        if name == "kDuration":
            absent = 0
        elif name == "end" and "start" in self.columns:
            column = pc.coalesce(column, pa.array(self.numpy("start")))
        elif name == "start" and column.null_count < len(column):
            column = pc.coalesce(column, self._approximate_start(column))
        return np.asarray(column.fill_null(absent).to_numpy())

    def _approximate_start(self, start: pa.Array) -> pa.Array:
        """When each row was launched, or the first row began; within the known starts."""
        bounds = pc.min_max(start).as_py()
        launch = self.arrow("launch")
        call_bounds = pc.if_else(pc.equal(pc.list_value_length(launch), 2), launch, None)
        launched = pc.coalesce(pc.list_element(call_bounds, 0), bounds["min"])
        return pc.max_element_wise(pc.min_element_wise(launched, bounds["max"]), bounds["min"])

    def dictionary(self, name: str) -> DictionaryColumn:
        """Return a column as its distinct values and an index per row."""
        column = self.columns.get(name)
        return column if isinstance(column, DictionaryColumn) else encode(self.arrow(name))

    def of_kind(self, *kinds: int | None) -> NDArray[np.bool_]:
        """Mask of the rows of some kinds, as `schema.KERNEL`; None stands for rows without one.

        Those are kernels: the original's files hold nothing else.
        """
        names = (None if kind is None else schema.KINDS[kind] for kind in kinds)
        return self.dictionary("kind").is_in(*names)

    def table(self) -> pa.Table:
        """Return all columns as an Arrow table, as in Parquet."""
        return pa.table({name: self.arrow(name) for name in schema.RECORD.names}, schema.RECORD)

    def slice(self, start: int, length: int) -> Records:
        """Choose consecutive rows."""
        return self.take(np.arange(start, min(start + length, self.rows)))

    def take(self, rows: NDArray[np.int64]) -> Records:
        """Choose rows."""
        index = pa.array(rows)
        columns = {
            name: column.take(rows) if isinstance(column, DictionaryColumn) else column.take(index)
            for name, column in self.columns.items()
        }
        return Records(len(rows), columns, self.devices, self.warnings)


_TIMED = frozenset(("start", "end", "kDuration"))
"""Columns that can be computed from others if they are unknown."""


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies


def split_numbers(column: pa.Array) -> pa.Array:
    """Convert lists of texts to `NUMBERED`."""
    return _map_texts(column, texts_with_numbers.split)


def plain_lists(column: pa.Array) -> pa.Array:
    """Convert `NUMBERED` to lists of plain texts."""
    return _map_texts(column, texts_with_numbers.spell)


def _map_texts(column: pa.Array, function: Callable[[pa.Array], pa.Array]) -> pa.Array:
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    return lists(lengths, function(column.flatten()), column.is_null())


def encode(column: pa.Array) -> DictionaryColumn:
    """Find the distinct values of a column of texts, numbers or lists of texts or numbers."""
    encoded = _key(column).dictionary_encode()
    index = encoded.indices.fill_null(-1).to_numpy()
    if pa.types.is_dictionary(column.type):
        return DictionaryColumn(index, encoded.dictionary.to_pylist())
    first = first_rows(index)
    return DictionaryColumn(index, column.take(pa.array(first)).to_pylist())


def _key(column: pa.Array) -> pa.Array:
    """Turn each list into one value that Arrow can hash: the codes of its elements, as bytes."""
    if not pa.types.is_list(column.type):
        return column
    numbers = _key(column.values).dictionary_encode().indices.fill_null(-1).to_numpy()
    offsets = column.offsets.to_numpy().astype(np.int64) * numbers.itemsize
    valid = pa.array(column.is_valid().to_numpy(zero_copy_only=False))
    buffers = [valid.buffers()[1], pa.py_buffer(offsets), pa.py_buffer(numbers)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), buffers)


def first_rows(index: NDArray[np.integer]) -> NDArray[np.int64]:
    """Find the first row of each number; these count up as they first occur; -1 is none."""
    top = np.maximum.accumulate(index)
    new = np.empty(len(index), bool)
    new[:1] = index[:1] >= 0
    np.greater(top[1:], top[:-1], out=new[1:])
    return np.flatnonzero(new)


def distinct(keys: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Number distinct keys as they first occur: the first row of each, and the number of each row.

    Numbers are held as int32, as the index of `DictionaryColumn` is: widen before multiplying.
    """
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    encoded = pa.array(keys).dictionary_encode()  # hashing; no sort of millions
    number = encoded.indices.to_numpy()
    return first_rows(number), number


def totals(number: IntArray, values: IntArray, count: int) -> NDArray[np.int64]:
    """Add up the values of each of the numbers below `count`, in exact integers."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, number, values)
    return sums


class RowTime(NamedTuple):
    """The time of some rows, and their number."""

    ns: int
    rows: int


def time_by_value(
    column: DictionaryColumn, duration_ns: IntArray, rows: NDArray[np.bool_] | None = None
) -> dict[Any, RowTime]:
    """Sum up all rows, or those chosen, by the value that a column has for them; null is None.

    Without values that no row has.
    """
    index, ns = column.index + 1, duration_ns
    if rows is not None:
        index, ns = index[rows], ns[rows]
    values = [None, *column.values]
    sums = totals(index, ns, len(values)).tolist()
    counts = np.bincount(index, minlength=len(values)).tolist()
    by_value: dict[Any, RowTime] = {}
    for value, time_ns, count in zip(values, sums, counts, strict=True):
        if count:
            before = by_value.get(value, RowTime(0, 0))
            by_value[value] = RowTime(before.ns + time_ns, before.rows + count)
    return by_value


def combinations(*columns: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Number the distinct combinations of some columns, as `distinct` does keys."""
    if (packed := _pack(columns)) is not None:
        return distinct(packed)
    first, number = distinct(columns[0])
    for column in columns[1:]:
        values, code = distinct(column)
        first, number = distinct(number.astype(np.int64) * len(values) + code)
    return first, number


def number_combinations(*columns: IntArray) -> NDArray[np.int32]:
    """Number the distinct combinations of some columns as they come."""
    return combinations(*columns)[1]


def number_lists(column: DictionaryColumn) -> IntArray:
    """Number the distinct lists of a column, whose dictionary may hold one several times."""
    numbers: dict[tuple[str, ...], int] = {}
    return column.numpy(lambda items: numbers.setdefault(tuple(items or ()), len(numbers)), -1)


def match_combinations(columns: Sequence[IntArray], wanted: Sequence[IntArray]) -> Int64Array:
    """Return the first row of `columns` that equals each row of `wanted`; MISSING if none does."""
    both = (np.concatenate(pair) for pair in zip(columns, wanted, strict=True))
    number = number_combinations(*both).astype(np.int64)
    count = len(columns[0])
    return first_index(number[:count], number[count:])


def _pack(columns: Sequence[IntArray]) -> NDArray[np.int64] | None:
    """Pack the values of each row into one number; None if they do not fit, or without rows."""
    if not len(columns[0]):
        return None
    lowest = [int(column.min()) for column in columns]
    spread = [int(column.max()) - low + 1 for column, low in zip(columns, lowest, strict=True)]
    if math.prod(spread) >= 1 << 62:  # a combination would not fit into an int64
        return None
    packed = np.zeros(len(columns[0]), np.int64)
    for column, low, size in zip(columns, lowest, spread, strict=True):
        if size > 1:  # nearly always all work is of one process, and one device
            packed *= size
            packed += column
            packed -= low
    return packed


def concat_dictionaries(parts: Sequence[DictionaryColumn]) -> DictionaryColumn:
    """Concatenate dictionary columns, renumbering their values."""
    numbers: dict[Any, int] = {}
    values: list[Any] = []
    indices = []
    for part in parts:
        index = np.full(len(part.values) + 1, -1)
        for number, value in enumerate(part.values):
            key = _hashable(value)
            if key not in numbers:
                numbers[key] = len(values)
                values.append(value)
            index[number] = numbers[key]
        indices.append(index[part.index])
    return DictionaryColumn(np.concatenate(indices), values)


def _hashable(value: Any) -> Any:  # noqa: ANN401 - texts, numbers, lists of them
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
