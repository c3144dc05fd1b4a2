"""Captures concatenated as if they were one, for comparison with merged sums."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import set_column
from pyprof.inputs.source import Source
from pyprof.prof.table import Table
from pyprof.records.records import Column, DictionaryColumn, Records, concat_dictionaries
from pyprof.schema import Capture

_NUMBERED = ("opId", "callIds")
"""Columns whose numbers mean something within one capture only."""


def together(sources: Sequence[Source]) -> Source:
    """Make several files one source, their rows under each other.

    Each keeps its own clock: what is compared in time belongs to one process. Where one of them
    holds no API calls, none count.
    """
    if len(sources) == 1:
        return sources[0]
    parts = [source.table.source for source in sources]
    numbers = _process_numbers([_processes(source) for source in sources])
    captures = [source.capture for source in sources if source.capture is not None]
    whole = len(captures) == len(sources)
    return Source(
        Table(_join(parts, numbers), sources[0].table.override),
        _joined(captures, numbers) if whole else None,
    )


def _processes(source: Source) -> list[int]:
    found = {int(pid) for pid in np.unique(source.table.source.numpy("pid")) if pid >= 0}
    if source.capture is not None:
        found.update(source.capture.threads.column("pid").drop_null().to_pylist())
    return sorted(found)


def _joined(captures: Sequence[Capture], numbers: Sequence[Mapping[int, int]]) -> Capture:
    threads, ranges, calls = [], [], []
    first = 0
    for capture, number in zip(captures, numbers, strict=True):
        pid = [number.get(pid, pid) for pid in capture.threads.column("pid").to_pylist()]
        threads.append(set_column(capture.threads, "pid", pa.array(pid, pa.int64())))
        ranges.append(_after(_after(capture.ranges, "thread", first), "forward_thread", first))
        calls.append(_after(capture.calls, "thread", first))
        first += capture.threads.num_rows
    return schema.Capture(
        captures[0].tool,
        captures[0].version,
        activities=schema.ACTIVITIES.empty_table(),
        calls=pa.concat_tables(calls).unify_dictionaries(),
        ranges=pa.concat_tables(ranges),
        threads=pa.concat_tables(threads),
        devices=pa.concat_tables([capture.devices for capture in captures]),
    )


def _after(table: pa.Table, name: str, first: int) -> pa.Table:
    return set_column(table, name, pc.add(table.column(name), first))


def _process_numbers(pids: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Return a map of each capture's process ids to ids that no other capture has.

    Hosts may use the same ids; one that is free stays as it is.
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
"""Larger than any process id."""


def _join(parts: Sequence[Records], numbers: Sequence[dict[int, int]]) -> Records:
    """Put records under each other as if one capture had held them all."""
    columns = {
        name: _under_each_other(name, parts)
        for name in schema.PARQUET.names
        if _known(name, [name in part.columns for part in parts])
    }
    columns |= _numbered_on(parts, [name for name in _NUMBERED if name in columns])
    if "pid" in columns:
        columns["pid"] = pa.array(
            [new.get(pid) for part, new in zip(parts, numbers, strict=True)
             for pid in part.arrow("pid").to_pylist()], pa.int64()
        )  # fmt: skip
    devices = pa.concat_tables([part.devices for part in parts])
    warnings = dict.fromkeys(text for part in parts for text in part.warnings)
    return Records(sum(part.rows for part in parts), columns, devices, tuple(warnings))


def _known(name: str, there: Sequence[bool]) -> bool:
    return any(there) if name in schema.RECORD.names else all(there)


def _under_each_other(name: str, parts: Sequence[Records]) -> Column:
    if any(isinstance(part.columns.get(name), DictionaryColumn) for part in parts):
        return concat_dictionaries([part.dictionary(name) for part in parts])
    return pa.chunked_array([part.arrow(name) for part in parts])


def _numbered_on(parts: Sequence[Records], names: Sequence[str]) -> dict[str, Column]:
    """Continue each capture's numbers after those of the one before."""
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    first = 0
    for part in parts:
        highest = [first - 1]
        for name in names:
            array = part.arrow(name)
            if pa.types.is_list(array.type):
                numbers = pc.add(array.values, first)
                moved = pa.ListArray.from_arrays(array.offsets, numbers, mask=array.is_null())
            else:
                moved = numbers = pc.add(array, first)
            chunks[name].append(moved)
            highest.append(pc.max(numbers).as_py() or 0)
        first = max(highest) + 1
    return {name: pa.chunked_array(arrays) for name, arrays in chunks.items()}
