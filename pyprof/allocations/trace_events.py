"""The `[memory]` events of torch.profiler (`profile_memory=True`) as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import MISSING
from pyprof.readers.kineto.columns import instant, microseconds, nanoseconds, whole_number
from pyprof.readers.kineto.file.events import all_args, loads
from pyprof.readers.kineto.file.stream import Trace

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.kineto.file.events import Event

_MAX_BYTES = 1 << 48
"""Limit of every number in an event, totals and addresses included."""


class MemoryEvents(NamedTuple):
    """One entry per event, in order of time."""

    time_ns: Int64Array
    pid: Int64Array
    tid: Int64Array
    address: Int64Array
    """Synthetic if the file has none; see `is_synthetic`."""
    bytes: Int64Array
    """Below 0 for a free."""
    device_type: Int64Array
    """As torch numbers them: 0 CPU, 1 CUDA."""
    device: Int64Array
    allocated: Int64Array
    """The allocator's count afterwards; MISSING if not recorded."""
    reserved: Int64Array


def read(path: Path) -> MemoryEvents:
    """Read the memory events of a trace; there may be none."""
    trace = Trace(path)
    rows = [
        row
        for groups in trace.events()
        for group in groups.values()
        for event in group
        if event.name == "[memory]" and (row := _row(event)) is not None
    ]
    base = instant(trace.header.get("baseTimeNanoseconds"))
    time_ns = nanoseconds([time_us for time_us, _ in rows]) + base
    columns = np.array([values for _, values in rows], np.int64)
    columns = columns.reshape(len(rows), len(MemoryEvents._fields) - 1)
    order = np.argsort(time_ns, kind="stable")
    return _make_up_addresses(MemoryEvents(time_ns[order], *columns[order].T))


_FIRST_MADE_UP = -10
"""Made-up addresses count down from here, clear of MISSING (-1)."""


def is_synthetic(address: Int64Array) -> Mask:
    """Mask of addresses that were made up because the file has none."""
    return np.asarray(address <= _FIRST_MADE_UP)


def _make_up_addresses(events: MemoryEvents) -> MemoryEvents:
    """Make up addresses if older torch wrote none: a free is of the latest live block of its size.

    Levels are exact then, but blocks of one size may be confused.
    """
    rows = np.flatnonzero(events.address == MISSING)
    address, following = events.address.copy(), _FIRST_MADE_UP
    held: dict[tuple[int, ...], list[int]] = {}
    columns = (events.bytes, events.device_type, events.device, events.pid)
    for row, size, *device in zip(rows.tolist(), *(each[rows].tolist() for each in columns),
                                  strict=True):  # fmt: skip
        live = held.setdefault((abs(size), *device), [])
        if size < 0 and live:
            address[row] = live.pop()
            continue
        address[row] = following
        if size > 0:
            live.append(following)
        following -= 1
    return events._replace(address=address)


_OTHERS = ("Device Type", "Device Id", "Total Allocated", "Total Reserved")


def _row(event: Event) -> tuple[float, tuple[int, ...]] | None:
    """Time and values of an event; None if either is missing."""
    args, time_us = all_args(event), microseconds(loads(event.ts))
    if time_us is None:
        return None
    size = whole_number(args.get("Bytes"))
    address = whole_number(args["Addr"]) if "Addr" in args else MISSING
    if not size or address is None:
        return None
    thread = [_number(number) for number in (event.pid, event.tid)]
    values = (*thread, address, size, *(_number(args.get(name)) for name in _OTHERS))
    if any(not -_MAX_BYTES < value < _MAX_BYTES for value in values):
        return None
    return time_us, values


def _number(value: object) -> int:
    number = whole_number(value)
    return MISSING if number is None else number
