"""Columns of memory in tables of groups: `prof --by op`, where memory was recorded, too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyprof.prof import group

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.analysis.rows import Query
    from pyprof.answers.memory_answer import DeviceMemory
    from pyprof.prof.columns.column import Column

NOT_RECORDED = (
    "alloc and peak_share are unknown: no memory was recorded with the capture; "
    "pyprof capture --memory does"
)


def highest_device(asked: Query, paths: Sequence[str]) -> DeviceMemory | None:
    """Return the device with the highest peak.

    None if no memory was recorded with the captures, or it is not asked for.
    """
    if not asked.of_memory:
        return None
    from pyprof.analysis.memory.peaks import highest_first  # noqa: PLC0415 - seldom asked for
    from pyprof.inputs.memory_recordings import read_with_captures  # noqa: PLC0415 - as above

    return next(iter(highest_first(read_with_captures(paths))), None)


def with_memory(
    columns: list[Column], groups: pa.Table, key: str, device: DeviceMemory | None
) -> tuple[list[Column], pa.Table]:
    """Add what groups allocate and hold at the peak; null without a device.

    A group that allocates nothing has 0. Memory is recorded by the innermost layer's name: groups
    that share that name have null.
    """
    names = groups.column(key).to_pylist()
    if device is None:
        nothing = [None] * len(names)
        return group.with_memory(columns, groups, nothing, nothing)
    if key == "layer":  # names of groups include outer layers, those of memory do not
        names = [name and name.rpartition(":")[2] for name in names]
    counts = Counter(names)
    by_name = {each.name: (each.allocated_bytes, each.bytes) for each in device.by[key]}
    sizes = [by_name.get(name, (0, 0)) if counts[name] == 1 else (None, None) for name in names]
    allocated = [size for size, _ in sizes]
    share = [held if held is None else 100 * held / (device.peak_bytes or 1) for _, held in sizes]
    return group.with_memory(columns, groups, allocated, share)
