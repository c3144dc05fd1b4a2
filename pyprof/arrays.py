"""Array types, and small operations on arrays and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

_Number = TypeVar("_Number", int, float)

Int64Array: TypeAlias = NDArray[np.int64]
IntArray: TypeAlias = NDArray[np.integer]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
"""One truth value per row."""

MISSING = -1
"""No value, in an array of indices, ids, amounts or times that cannot be negative."""


def ints(column: pa.ChunkedArray | pa.Array, absent: int = MISSING) -> Int64Array:
    """Return an integer column as int64, with `absent` for null."""
    if column.null_count:
        if column.null_count == len(column):
            return np.full(len(column), absent)
        wide = column.cast(pa.int64()) if pa.types.is_integer(column.type) else column
        column = pc.fill_null(wide, absent)
    return np.asarray(column.to_numpy()).astype(np.int64, copy=False)


def or_null(values: IntArray) -> pa.Array:
    """Return a column with null for MISSING."""
    return pa.array(values, mask=values == MISSING)


def texts_by_index(index: IntArray, texts: Sequence[str | None]) -> pa.DictionaryArray:
    """Return a dictionary column from the index of each row's text."""
    return pa.DictionaryArray.from_arrays(
        pa.array(index.astype(np.int32)), pa.array(texts, pa.string())
    )


def set_column(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Replace a column; its type stays that of the schema."""
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, column.cast(field.type))


def lists(lengths: Int64Array, values: pa.Array, mask: pa.Array | None = None) -> pa.Array:
    """Build a list column from the length of each list and the concatenated values."""
    offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask)


def first_index(values: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return the index in `values` of each wanted value; MISSING if it is not there."""
    if not len(values):
        return np.full(len(wanted), MISSING)
    order = np.argsort(values, kind="stable")
    index = order[np.minimum(np.searchsorted(values, wanted, sorter=order), len(values) - 1)]
    return np.where(values[index] == wanted, index, MISSING)


def referenced_rows(rows: Sequence[IntArray], count: int) -> Int64Array:
    """Return the distinct rows that `rows` refer to in a table of `count`, ascending."""
    marked = np.zeros(count + 1, bool)  # the last is for MISSING
    for each in rows:
        marked[each] = True
    return np.flatnonzero(marked[:count])


def sum_if_known(values: Sequence[_Number | None]) -> _Number | None:
    """Return the sum; None if any value is None."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def ratio_if_known(part: float | None, total: float | None) -> float | None:
    """Return part over total; None if either is None, or the total is 0."""
    return part / total if part is not None and total else None


def latest_before(
    keys: IntArray, starts: Int64Array, wanted: IntArray, before: Int64Array
) -> Int64Array:
    """Return, per wanted key, its last entry that starts at or before `before`; else MISSING."""
    if not len(keys):
        return np.full(len(wanted), MISSING)
    merged = np.lexsort(
        (
            np.concatenate([np.zeros(len(keys), np.int8), np.ones(len(wanted), np.int8)]),
            np.concatenate([starts, before]),
            np.concatenate([keys, wanted]),
        )
    )
    entry = merged < len(keys)
    # the last entry so far, carried along the sorted rows
    last = np.maximum.accumulate(np.where(entry, np.arange(len(merged)), -1))
    row = np.where(last >= 0, merged[last], MISSING)[~entry]
    latest = np.full(len(wanted), MISSING)
    latest[merged[~entry] - len(keys)] = row
    same = (latest != MISSING) & (keys[latest] == wanted)
    return np.where(same, latest, MISSING)


def nearest(parent: IntArray, wanted: Mask) -> IntArray:
    """Return the nearest wanted ancestor of each row, by the rows of parents; MISSING if none."""
    above = parent.copy()
    active = np.flatnonzero(above != MISSING)
    while len(active):
        active = active.take(np.flatnonzero(~wanted.take(above.take(active))))
        above[active] = above.take(above.take(active))
        active = active.take(np.flatnonzero(above.take(active) != MISSING))
    return above
