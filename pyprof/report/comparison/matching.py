"""The rows of a capture, totalled by what they do rather than by the kernel that did it.

A library may choose another kernel for the same work; op, shapes, dtypes and layer stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof.columns import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """The rows of one key."""

    calls: int
    """Op calls."""
    rows: int
    """Kernels, copies and so on."""
    time_ns: int


def _op(table: Table) -> pa.Array:
    """Name the op with its direction; what no op called goes by its kernel."""
    op, part, kernel = (COLUMNS[name].values(table) for name in ("op", "dir", "kernel"))
    named = pc.coalesce(op, kernel)
    backward = pc.fill_null(pc.equal(part, "bprop"), False)  # noqa: FBT003 - Arrow's spelling
    return pc.if_else(backward, pc.binary_join_element_wise(named, "(backward)", " "), named)


def _shape(table: Table) -> pa.Array:
    return _of_lists(table, "sizes", _sizes)


def _dtype(table: Table) -> pa.Array:
    return _of_lists(table, "dtypes", _dtypes)


def _sizes(value: list[list[int]]) -> str:
    return " ".join("x".join(map(str, size)) for size in value)


def _dtypes(value: list[str]) -> str:
    return ",".join(dict.fromkeys(name for name in value if name))


def _of_lists(table: Table, name: str, spell: Callable[[Any], str]) -> pa.Array:
    column = table.records.coded(name)
    texts = [*(spell(value) or None if value else None for value in column.values), None]
    index = np.where(column.index < 0, len(texts) - 1, column.index)
    return pa.array(texts, pa.string()).take(pa.array(index))


def _column(name: str) -> Callable[[Table], pa.Array]:
    return COLUMNS[name].values


KEYS: dict[str, Callable[[Table], pa.Array]] = {
    "op": _op,
    "shape": _shape,
    "dtype": _dtype,
    "layer": _column("layer"),
    "line": _column("line"),
    "kernel": _column("kernel"),
}
"""What rows can be matched by."""

DEFAULT = ("op", "shape", "dtype", "layer")


def known_in_both(a: Table, b: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Leave out the keys that one of the captures knows of no row: they would match nothing."""
    return tuple(
        name
        for name in names
        if all((found := KEYS[name](table)).null_count < len(found) for table in (a, b))
    )


def sums(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None) -> dict[Key, Sum]:
    """Total all rows, or those chosen, by some keys."""
    data = pa.table(
        {
            **{name: KEYS[name](table) for name in names},
            "_ns": pa.array(table.duration_ns),
            "_call": pa.array(table.costs.call),
        }
    )
    if rows is not None:
        data = data.filter(pa.array(rows))
    found = data.group_by(list(names)).aggregate(
        [("_ns", "sum"), ("_ns", "count"), ("_call", "count_distinct")]
    )
    return {
        tuple(row[name] for name in names): Sum(
            row["_call_count_distinct"], row["_ns_count"], row["_ns_sum"]
        )
        for row in found.to_pylist()
    }
