"""What rows can be matched by: what they compute, rather than the kernel that did it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import ints
from pyprof.marker.user_ranges import is_step, step_name
from pyprof.prof.columns.column_values import spelt
from pyprof.records.records import first_rows, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.arrays import IntArray
    from pyprof.prof.table import Table


def _op(table: Table) -> pa.DictionaryArray:
    """Name the op with its direction; what no op called goes by its kernel."""
    columns = [table.numbered(name) for name in ("op", "dir", "kernel")]
    number = number_combinations(*(ints(column.indices) for column in columns))
    first = pa.array(first_rows(number))
    op, part, kernel = (column.take(first).cast(pa.string()) for column in columns)
    named = pc.coalesce(op, kernel)
    backward = pc.fill_null(pc.equal(part, "bprop"), False)  # noqa: FBT003 - Arrow's spelling
    texts = pc.if_else(backward, pc.binary_join_element_wise(named, "(backward)", " "), named)
    return _numbered(texts, number)


def _numbered(texts: pa.Array, number: IntArray) -> pa.DictionaryArray:
    """The text of each row, by its index among some that may be equal."""
    distinct = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        distinct.indices.take(pa.array(number)), distinct.dictionary
    )


def _shape(table: Table) -> pa.DictionaryArray:
    return _of_lists(table, "sizes", _sizes)


def _dtype(table: Table) -> pa.DictionaryArray:
    return _of_lists(table, "dtypes", _dtypes)


def _sizes(value: list[list[int]]) -> str:
    return " ".join("x".join(map(str, size)) for size in value)


def _dtypes(value: list[str]) -> str:
    return ",".join(dict.fromkeys(name for name in value if name))


def _of_lists(table: Table, name: str, spell: Callable[[Any], str]) -> pa.DictionaryArray:
    column = table.records.dictionary(name)
    texts = [*(spell(value) or None if value else None for value in column.values), None]
    index = np.where(column.index < 0, len(texts) - 1, column.index)
    return _numbered(pa.array(texts, pa.string()), index)


def _layer(table: Table) -> pa.DictionaryArray:
    """Name the layers; of a range around a step the loop, for each step would match no other."""
    return spelt(table.own_or_forward("layer"), _path)


def _path(layers: Sequence[str]) -> str | None:
    return ":".join(step_name(name) if is_step(name) else name for name in layers) or None


def _column(name: str) -> Callable[[Table], pa.DictionaryArray]:
    return lambda table: table.numbered(name)


KEYS: dict[str, Callable[[Table], pa.DictionaryArray]] = {
    "op": _op,
    "shape": _shape,
    "dtype": _dtype,
    "layer": _layer,
    "line": _column("line"),
    "kernel": _column("kernel"),
}
"""What rows can be matched by."""
