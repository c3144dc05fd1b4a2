"""The `[memory]` events of torch.profiler (`profile_memory=True`) as columns.

They are few among many events: they are cut out of the text, and the rest is not parsed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from pyprof.arrays import MISSING
from pyprof.readers.kineto.columns import instant, microseconds, nanoseconds, whole_number
from pyprof.readers.kineto.file.events import loads_if_valid
from pyprof.readers.kineto.file.stream import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyprof.arrays import Int64Array, Mask

_NAME = b'"[memory]"'
_BRACE, _END = re.compile(rb"[{}]"), re.compile(rb"[^{}]{0,4096}\}")
_ARGUMENTS_AND_END = re.compile(rb"[^{}]{0,4096}\{[^{}]{0,4096}\}[^{}]{0,4096}\}")
"""What follows the name in an event whose arguments come after it, as torch writes them."""
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')
_LONGEST = 1 << 14
"""Maximum bytes of an event."""
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
    base, rest = 0, b""
    rows: list[tuple[float, tuple[int, ...]]] = []
    for block in Trace(path).blocks():
        text = rest + block
        if match := _BASE.search(text):
            base = instant(int(match[1]))
        spans = [*_spans(text)]
        rows += filter(None, map(_row, _parsed([text[slice(*span)] for span in spans])))
        done = spans[-1][1] if spans else 0
        rest = text[max(done, len(text) - _LONGEST) :]  # an event may go on in the next block
    time_ns = nanoseconds([time_us for time_us, _ in rows]) + base
    columns = np.array([values for _, values in rows], np.int64)
    columns = columns.reshape(len(rows), len(MemoryEvents._fields) - 1)
    order = np.argsort(time_ns, kind="stable")
    return _paired(MemoryEvents(time_ns[order], *columns[order].T))


_FIRST_MADE_UP = -10


def is_synthetic(address: Int64Array) -> Mask:
    """Mask of addresses that were made up because the file has none."""
    return np.asarray(address <= _FIRST_MADE_UP)


def _paired(events: MemoryEvents) -> MemoryEvents:
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


def _spans(text: bytes) -> Iterator[tuple[int, int]]:
    """Find where events begin and end that contain one pair of braces, that of their arguments.

    The braces around a name decide; they are the same for all names between two braces.
    """
    done, name = 0, text.find(_NAME)
    while name >= 0:
        if (span := _span(text, name, max(done, name - _LONGEST))) is not None:
            yield span
            after = done = span[1]
        else:
            brace = _BRACE.search(text, name)
            after = brace.end() if brace else len(text)
        name = text.find(_NAME, after)


def _span(text: bytes, name: int, low: int) -> tuple[int, int] | None:
    """Begin and end of the event around a name, which does not begin before `low`."""
    begin, closed = text.rfind(b"{", low, name), text.rfind(b"}", low, name)
    after = _ARGUMENTS_AND_END
    if begin < closed:  # the arguments came first
        begin = text.rfind(b"{", low, max(text.rfind(b"{", low, closed), low))
        if text.find(b"}", max(begin, low), closed) >= 0:
            return None
        after = _END
    end = after.match(text, name)
    return None if begin < 0 or end is None else (begin, end.end())


def _parsed(texts: list[bytes]) -> list[dict[str, Any]]:
    """Parse the events; invalid ones are left out."""
    try:
        events = orjson.loads(b"[" + b",".join(texts) + b"]")
    except orjson.JSONDecodeError:
        events = list(filter(None, map(loads_if_valid, texts)))
    return [event for event in events if event.get("name") == "[memory]"]


_OTHERS = ("Device Type", "Device Id", "Total Allocated", "Total Reserved")


def _row(event: dict[str, Any]) -> tuple[float, tuple[int, ...]] | None:
    """Time and values of an event; None if either is missing."""
    args, time_us = event.get("args"), microseconds(event.get("ts"))
    if not isinstance(args, dict) or time_us is None:
        return None
    size = whole_number(args.get("Bytes"))
    address = whole_number(args["Addr"]) if "Addr" in args else MISSING
    if not size or address is None:
        return None
    thread = [_number(event.get(name)) for name in ("pid", "tid")]
    values = (*thread, address, size, *(_number(args.get(name)) for name in _OTHERS))
    if any(not -_MAX_BYTES < value < _MAX_BYTES for value in values):
        return None
    return time_us, values


def _number(value: object) -> int:
    number = whole_number(value)
    return MISSING if number is None else number
