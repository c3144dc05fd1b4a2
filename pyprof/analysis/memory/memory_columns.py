"""Columns of memory in tables of groups: `prof --by op`, where memory was recorded, too."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyprof.prof import group

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.analysis.memory.peaks import DeviceMemory
    from pyprof.analysis.rows import Query, WithMemory
    from pyprof.prof.columns.column import Column

_Number = TypeVar("_Number", int, float)

NOT_RECORDED = (
    "alloc and peak_share are unknown: no memory was recorded with the capture; "
    "pyprof capture --memory does"
)


def with_memory(asked: Query, paths: Sequence[str]) -> WithMemory | None:
    """Return a function that adds memory to groups, from the device with the highest peak.

    None if no memory was recorded with the captures, or it is not asked for.
    """
    if not asked.of_memory:
        return None
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - seldom asked for
    from pyprof.inputs.memory_recordings import beside  # noqa: PLC0415 - as above

    devices = highest_first(beside(paths))
    return partial(_added, device=devices[0]) if devices else None


def unknown(columns: list[Column], groups: pa.Table, key: str) -> tuple[list[Column], pa.Table]:
    """Add columns of memory without values."""
    del key
    nothing = [None] * groups.num_rows
    return group.with_memory(columns, groups, nothing, nothing)


def _added(
    columns: list[Column], groups: pa.Table, key: str, device: DeviceMemory
) -> tuple[list[Column], pa.Table]:
    """Add what groups allocate and hold at the peak.

    A group that allocates nothing has 0. Memory is recorded by the innermost layer's name: groups
    that share that name have null.
    """
    by_name = {each.name: each for each in device.by[key]}
    names = groups.column(key).to_pylist()
    if key == "layer":  # names of groups include outer layers, those of memory do not
        names = [name and name.rpartition(":")[2] for name in names]
    shared = {name for name, count in Counter(names).items() if count > 1}
    of_rows = [None if name in shared else by_name.get(name) for name in names]
    absent = [name in shared for name in names]
    allocated = [each.allocated_bytes if each else 0 for each in of_rows]
    held = [each.bytes if each else 0 for each in of_rows]
    share = [100 * size / device.peak_bytes if device.peak_bytes else 0.0 for size in held]
    return group.with_memory(columns, groups, _without(allocated, absent), _without(share, absent))


def _without(values: Sequence[_Number], absent: Sequence[bool]) -> list[_Number | None]:
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]
