"""Columns of memory in tables of groups: `prof --by op`, where memory was recorded, too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from pyprof.inputs.memory_recordings import beside
from pyprof.prof.column import FLOAT, INT, Column
from pyprof.report import rows
from pyprof.report.analysis.memory import highest_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.prof.table import Table
    from pyprof.report.analysis.memory import DeviceMemory
    from pyprof.report.rows import Answer, Asked

KEYS = ("op", "line", "layer")
"""Columns by which memory is grouped, too."""


def shown(
    answer: Answer, asked: Asked, paths: Sequence[str]
) -> tuple[Sequence[Column], Iterator[pa.Table]]:
    """Give what `rows.shown` does, with memory beside groups whose columns are the usual ones."""
    columns, tables = rows.shown(answer, asked)
    if asked.names:
        return columns, tables
    return with_memory(columns, tables, asked.by, paths)


def with_memory(
    columns: Sequence[Column], tables: Iterator[pa.Table], key: str | None, paths: Sequence[str]
) -> tuple[Sequence[Column], Iterator[pa.Table]]:
    """Add what groups allocate and hold at the peak, if memory was recorded with the captures.

    Of several devices that which peaks highest. Groups that allocate nothing have 0; a layer of
    which memory tells only the name, and which several groups share, has null.
    """
    devices = highest_first(beside(paths)) if key in KEYS else ()
    if not devices or key is None:
        return columns, tables
    return [*columns, *COLUMNS], (_added(table, key, devices[0]) for table in tables)


def _added(table: pa.Table, key: str, device: DeviceMemory) -> pa.Table:
    groups = {group.name: group for group in device.by[key]}
    names = table.column(key).to_pylist()
    if key == "layer":  # these have those around them before them, memory the innermost alone
        names = [name and name.rpartition(":")[2] for name in names]
    shared = {name for name, count in Counter(names).items() if count > 1}
    of_rows = [None if name in shared else groups.get(name) for name in names]
    absent = [name in shared for name in names]
    allocated = [each.allocated_bytes if each else 0 for each in of_rows]
    held = [each.bytes if each else 0 for each in of_rows]
    share = [100 * size / device.peak_bytes if device.peak_bytes else 0.0 for size in held]
    return table.append_column(
        "alloc", pa.array(_without(allocated, absent), pa.int64())
    ).append_column("peak_share", pa.array(_without(share, absent), pa.float64()))


def _without(values: Sequence[float], absent: Sequence[bool]) -> list[float | None]:
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]


def _of_groups(table: Table) -> pa.Array:
    raise TypeError(f"memory belongs to groups of rows, not to each of {table.records.rows}")


COLUMNS = (
    Column("alloc", "Alloc", INT, 12, _of_groups,
           "Memory that it allocated in the whole recording.", "byte"),
    Column("peak_share", "Peak(%)", FLOAT, 8, _of_groups,
           "Its share of what the device held at the peak.", "%"),
)  # fmt: skip
