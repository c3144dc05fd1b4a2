"""JSON texts from whole columns: a template filled once a row, by Arrow."""

from __future__ import annotations

import re
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
    """Replace each `$name` of a template by that column's text, once a row.

    A row with a null in any of them becomes null.
    """
    parts = _PLACE.split(template)
    pieces = [columns[part] if place % 2 else part for place, part in enumerate(parts)]
    return pc.binary_join_element_wise(*pieces, "")


def microseconds(time_ns: NDArray[np.int64]) -> pa.Array:
    """Write ns as µs, which the format wants, to the ns."""
    us, rest = np.divmod(time_ns, _NS_PER_US)
    rest_text = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 3, "0")
    return pc.binary_join_element_wise(pa.array(us).cast(pa.string()), rest_text, ".")


def integers(values: NDArray[np.int64]) -> pa.Array:
    """Write integers."""
    return pa.array(values).cast(pa.string())


def dictionary(values: Iterable[Any], index: IntArray) -> pa.Array:
    """Write each distinct value as JSON, then each row's; index -1 becomes `null`."""
    texts = [*(orjson.dumps(value).decode() for value in values), "null"]
    return pa.array(texts, pa.string()).take(pa.array(np.where(index < 0, len(texts) - 1, index)))


def numbers_or_null(column: pa.Array) -> pa.Array:
    """Write numbers, and `null` for what is not known."""
    return pc.fill_null(column.cast(pa.string()), "null")


def event(**fields: Any) -> str:  # noqa: ANN401 - JSON
    """Write a single event."""
    return orjson.dumps(fields).decode()


# Traces that were written of several captures as one: times and numbers are moved in the text.


_MOVED = re.compile(rb'"(ts|pid|id|External id)":(\d+)(?:\.(\d+))?')
"""In a text of JSON these quotes would be escaped: it is never taken for a key."""
_APART = 1 << 22
"""As many processes Linux tells apart; viewers keep their numbers in 32 bits."""
_BLOCK_BYTES = 1 << 22
_NS_DIGITS = 3


def head(path: Path) -> dict[str, Any]:
    """Read what stands before the events of a trace of ours."""
    with path.open("rb") as file:
        metadata: dict[str, Any] = orjson.loads(file.readline() + b"]}")
    return metadata


def events(path: Path) -> Iterator[bytes]:
    """Give the events of a trace of ours in blocks, of which none begins or ends with a comma."""
    with path.open("rb") as file:
        file.readline()
        while lines := file.readlines(_BLOCK_BYTES):
            if block := b"".join(line for line in lines if line.startswith(b"{")):
                yield block.rstrip(b",\n")


class Numbers:
    """Gives processes, flows and op calls numbers that no other capture's have."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._pids: dict[int, int] = {}
        self._next_id = self._calls = 0

    def of_next(self, later_ns: int) -> Callable[[bytes], bytes]:
        """Give the function that moves the events of the next capture, and its times by this."""
        self._taken.update(self._pids.values())
        self._pids = {}
        first_id = self._next_id

        def moved(match: re.Match[bytes]) -> bytes:
            key, integer, part = match.groups(b"")
            number = int(integer)
            if key == b"pid":
                return b'"pid":%d' % self._pid(number)
            if key == b"External id":
                return b'"External id":%d' % (self._calls + number)
            if key == b"id":
                self._next_id = max(self._next_id, first_id + number + 1)
                return b'"id":%d' % (first_id + number)
            ns = 1000 * number + int(part.ljust(_NS_DIGITS, b"0")[:_NS_DIGITS]) + later_ns
            return b'"ts":%d.%03d' % divmod(ns, 1000)

        return lambda block: _MOVED.sub(moved, block)

    def _pid(self, pid: int) -> int:
        if pid not in self._pids:
            number = pid
            while number in self._taken:
                number += _APART
            self._pids[pid] = number
        return self._pids[pid]

    def after(self, counts: Counts) -> None:
        """Number op calls on behind those of a capture."""
        self._calls += counts.calls

    def labels(self, name: str) -> Iterator[str]:
        """Write whose the processes of this capture are."""
        for pid in self._pids.values():
            yield event(ph="M", name="process_labels", pid=pid, tid=0, args={"labels": name})
