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
from pyprof.prof.group import add_up

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


_SUMS = {"calls": "sum", "rows": "sum", "ns": "sum"}


@dataclass(frozen=True, slots=True)
class Matched:
    """All rows by some keys, small enough to send."""

    sums: pa.Table
    """The keys, then `calls`, `rows` and `ns`."""
    known: frozenset[str]
    """The keys that a row has."""

    def plus(self, other: Matched) -> Matched:
        """Add the rows of another capture."""
        sums = pa.concat_tables([self.sums, other.sums])
        keys = [name for name in sums.column_names if name not in _SUMS]
        return Matched(add_up(sums, keys, _SUMS), self.known | other.known)

    def by(self, names: Sequence[str]) -> dict[Key, Sum]:
        """Give the sums by some of the keys: no op call has two values of one that is left out."""
        return {
            tuple(row[name] for name in names): Sum(row["calls"], row["rows"], row["ns"])
            for row in add_up(self.sums, names, _SUMS).to_pylist()
            if row["rows"]  # by no key at all, no rows are a group, too
        }


def known_in_both(a: Matched, b: Matched, names: Sequence[str]) -> tuple[str, ...]:
    """Leave out the keys that one of the captures knows of no row: they would match nothing."""
    return tuple(name for name in names if name in a.known & b.known)


def matched(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None) -> Matched:
    """Total all rows, or those chosen, by some keys."""
    keys = {name: KEYS[name](table) for name in names}
    data = pa.table({**keys, "ns": pa.array(table.duration_ns), "call": pa.array(table.costs.call)})
    if rows is not None:
        data = data.filter(pa.array(rows))
    found = data.group_by(list(names)).aggregate(
        [("call", "count_distinct"), ("ns", "count"), ("ns", "sum")]
    )
    found = found.select([*names, "call_count_distinct", "ns_count", "ns_sum"])
    known = frozenset(name for name, values in keys.items() if values.null_count < len(values))
    return Matched(found.rename_columns([*names, *_SUMS]), known)
