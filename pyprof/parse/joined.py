"""Records of several captures under each other, one rank after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.parse.records import Coded, Records, concat_coded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.parse.records import Column

_NUMBERED = ("opId", "callIds")
"""Columns whose numbers mean something within one capture only."""


def process_numbers(pids: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Give the processes of each capture numbers that no other capture's have.

    Hosts number their processes alike; a number that is free stays as it is.
    """
    taken: set[int] = set()
    found = []
    for theirs in pids:
        numbers = {}
        for pid in theirs:
            number = pid
            while number in taken:
                number += _APART
            numbers[pid] = number
        taken.update(numbers.values())
        found.append(numbers)
    return found


_APART = 1 << 32
"""More than any process number is."""


def recorded(pid: pa.Array) -> pa.Array:
    """Give process numbers as their captures have them."""
    return pc.bit_wise_and(pid, _APART - 1)


def pids(records: Records) -> list[int]:
    """Give the processes of some records, in ascending order."""
    return [int(pid) for pid in np.unique(records.numpy("pid")) if pid >= 0]


def join(parts: Sequence[Records], numbers: Sequence[dict[int, int]] | None = None) -> Records:
    """Put records under each other as if one capture had held them all.

    `numbers` are those of `process_numbers`, where something else is to share them.
    """
    if len(parts) == 1 and numbers is None:
        return parts[0]
    renumbered = numbers or process_numbers([pids(part) for part in parts])
    columns = {
        name: _under_each_other(name, parts)
        for name in schema.PARQUET.names
        if _known(name, [name in part.columns for part in parts])
    }
    columns |= _numbered_on(parts, [name for name in _NUMBERED if name in columns])
    if "pid" in columns:
        columns["pid"] = pa.concat_arrays(
            [_renumbered(part, new) for part, new in zip(parts, renumbered, strict=True)]
        )
    devices = pa.concat_tables([part.devices for part in parts])
    warnings = dict.fromkeys(text for part in parts for text in part.warnings)
    return Records(sum(part.rows for part in parts), columns, devices, tuple(warnings))


def _known(name: str, there: Sequence[bool]) -> bool:
    """Tell whether a column is; one that follows from others only where all parts have it."""
    return any(there) if name in schema.RECORD.names else all(there)


def _under_each_other(name: str, parts: Sequence[Records]) -> Column:
    if any(isinstance(part.columns.get(name), Coded) for part in parts):
        return concat_coded([part.coded(name) for part in parts])
    return pa.chunked_array([part.arrow(name) for part in parts])


def _numbered_on(parts: Sequence[Records], names: Sequence[str]) -> dict[str, Column]:
    """Let each capture's numbers begin after those of the one before."""
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    first = 0
    for part in parts:
        moved = {name: _plus(part.arrow(name), first) for name in names}
        for name, array in moved.items():
            chunks[name].append(array)
        highest = [pc.max(_flat(array)).as_py() for array in moved.values()]
        first = max([first, *(number + 1 for number in highest if number is not None)])
    return {name: pa.chunked_array(arrays) for name, arrays in chunks.items()}


def _plus(array: pa.Array, first: int) -> pa.Array:
    if not pa.types.is_list(array.type):
        return pc.add(array, first)
    return pa.ListArray.from_arrays(
        array.offsets, pc.add(array.values, first), mask=array.is_null()
    )


def _flat(array: pa.Array) -> pa.Array:
    return array.flatten() if pa.types.is_list(array.type) else array


def _renumbered(part: Records, new: dict[int, int]) -> pa.Array:
    pid = part.numpy("pid")
    if all(pid == number for pid, number in new.items()):
        return part.arrow("pid")
    old = np.array(sorted(new))
    number = np.array([new[pid] for pid in sorted(new)])
    found = number[np.clip(np.searchsorted(old, pid), 0, len(old) - 1)]
    return pa.array(np.where(pid >= 0, found, -1), mask=pid < 0)
