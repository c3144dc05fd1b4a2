"""JSON texts of a trace: templates filled once per row by Arrow, and renumbered as bytes."""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from pyprof.arrays import IntArray
    from pyprof.prof.group import Counts

_PLACE = re.compile(r"\$(\w+)")
_NS_PER_US = 1000


def fill(template: str, **columns: pa.Array) -> pa.Array:
    """Replace each `$name` of a template by that column's text, once per row.

    A row with a null in any column becomes null.
    """
    parts = _PLACE.split(template)
    pieces = [columns[part] if index % 2 else part for index, part in enumerate(parts)]
    return pc.binary_join_element_wise(*pieces, "")


def microseconds(time_ns: NDArray[np.int64]) -> pa.Array:
    """Write ns as µs, the unit of the format, without rounding."""
    us, rest = np.divmod(time_ns, _NS_PER_US)
    rest_text = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(pa.array(us).cast(pa.string()), rest_text, ".")


def integers(values: NDArray[np.int64]) -> pa.Array:
    """Write integers."""
    return pa.array(values).cast(pa.string())


def dictionary(values: Iterable[Any], index: IntArray) -> pa.Array:
    """Write each distinct value as JSON, then look up each row's; index -1 becomes `null`."""
    texts = [*(orjson.dumps(value).decode() for value in values), "null"]
    return pa.array(texts, pa.string()).take(pa.array(np.where(index < 0, len(texts) - 1, index)))


def numbers_or_null(column: pa.Array) -> pa.Array:
    """Write numbers, and `null` for unknown ones."""
    return pc.fill_null(column.cast(pa.string()), "null")


def event(**fields: Any) -> str:  # noqa: ANN401 - JSON
    """Write a single event."""
    return orjson.dumps(fields).decode()


_MOVED = re.compile(rb'"(ts|pid|id|External id)":(\d+)(?:\.(\d+))?')
"""Keys only: inside a JSON string these quotes would be escaped."""
_APART = 1 << 22
"""Linux's maximum of process ids; viewers keep them in 32 bits."""
_BLOCK_BYTES = 1 << 22
_NS_DIGITS = 3


def head(path: Path) -> dict[str, Any]:
    """Read what precedes the events in a trace of ours."""
    with path.open("rb") as file:
        metadata: dict[str, Any] = orjson.loads(file.readline() + b"]}")
    return metadata


def events(path: Path) -> Iterator[bytes]:
    """Yield the events of a trace of ours in blocks, without commas around them."""
    with path.open("rb") as file:
        file.readline()
        while lines := file.readlines(_BLOCK_BYTES):
            if block := b"".join(line for line in lines if line.startswith(b"{")):
                yield block.rstrip(b",\n")


class Numbers:
    """Makes the numbers of processes, flows and op calls unique among captures."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._pids: dict[int, int] = {}
        self._next_id = self._calls = 0

    def of_next(self, later_ns: int) -> Callable[[bytes], bytes]:
        """Return a function that renumbers the next capture's events, delayed by `later_ns`."""
        self._taken.update(self._pids.values())
        self._pids = {}
        first_id = self._next_id

        def moved(match: re.Match[bytes]) -> bytes:
            key, integer, part = match.groups(b"")
            number = int(integer)
            if key == b"pid":
                if number not in self._pids:
                    free = (pid for pid in count(number, _APART) if pid not in self._taken)
                    self._pids[number] = next(free)
                return b'"pid":%d' % self._pids[number]
            if key == b"External id":
                return b'"External id":%d' % (self._calls + number)
            if key == b"id":
                self._next_id = max(self._next_id, first_id + number + 1)
                return b'"id":%d' % (first_id + number)
            ns = 1000 * number + int(part.ljust(_NS_DIGITS, b"0")[:_NS_DIGITS]) + later_ns
            return b'"ts":%d.%03d' % divmod(ns, 1000)

        return lambda block: _MOVED.sub(moved, block)

    def after(self, counts: Counts) -> None:
        """Continue the numbers of op calls after those of a capture."""
        self._calls += counts.calls

    def labels(self, name: str) -> Iterator[str]:
        """Label the processes of this capture."""
        for pid in self._pids.values():
            yield event(ph="M", name="process_labels", pid=pid, tid=0, args={"labels": name})
