"""What rows can be matched by: what they compute, rather than the kernel that did it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.marker.user_ranges import is_step, step_name
from pyprof.prof.column_values import spelt
from pyprof.prof.columns import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.prof.table import Table


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


def _layer(table: Table) -> pa.Array:
    """Name the layers; of a range around a step the loop, for each step would match no other."""
    return pc.cast(spelt(table.own_or_forward("layer"), _path), pa.string())


def _path(layers: Sequence[str]) -> str | None:
    return ":".join(step_name(name) if is_step(name) else name for name in layers) or None


def _column(name: str) -> Callable[[Table], pa.Array]:
    return COLUMNS[name].values


KEYS: dict[str, Callable[[Table], pa.Array]] = {
    "op": _op,
    "shape": _shape,
    "dtype": _dtype,
    "layer": _layer,
    "line": _column("line"),
    "kernel": _column("kernel"),
}
"""What rows can be matched by."""
