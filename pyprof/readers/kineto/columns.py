"""Values of many events as columns: times, whole numbers, threads. Invalid values become null."""

from __future__ import annotations

import zlib
from functools import cache
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof.arrays import ints as integers
from pyprof.arrays import set_column
from pyprof.readers.kineto.file.events import all_loads

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy.typing as npt

    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.readers.kineto.file.events import Event

_INT64 = range(-(2**63), 2**63)

_MAX_NS = 2**61
"""Times beyond 73 years are invalid; sums of a few smaller ones fit an int64."""
_MAX_US = _MAX_NS / 1000


def microseconds(value: object) -> float | None:
    """Return the time or duration of a JSON value; None if invalid."""
    if type(value) not in (int, float):  # nearly always one of them
        if not isinstance(value, str):
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    return value if -_MAX_US < value < _MAX_US else None  # type: ignore[operator, return-value]


class Timed(NamedTuple):
    """Events and their start times."""

    events: list[Event]
    us: Floats
    """As in the trace; nan if missing."""
    exact: Int64Array | None = None
    """The same in ns, if the trace has texts: floats of µs since 1970 are only exact to 0.25 µs."""

    @property
    def start(self) -> Int64Array:
        """Start times, ns; only valid if all are known."""
        return nanoseconds(self.us) if self.exact is None else self.exact

    def starts(self) -> pa.Array:
        """Start times, ns; null if missing."""
        if self.exact is None:
            return times(self.us)
        return pa.array(self.exact, mask=np.isnan(self.us))

    def filter(self, chosen: Mask) -> Timed:
        """Keep some of the events."""
        if chosen.all():
            return self
        exact = None if self.exact is None else self.exact[chosen]
        return Timed([*compress(self.events, chosen.tolist())], self.us[chosen], exact)


def timed(events: list[Event]) -> Timed:
    """Read the start times of events."""
    values = all_loads([event.ts for event in events])
    exact, kinds = None, {*map(type, values)}
    if kinds - {int, float}:
        exact = _parse_exactly(values) if kinds == {str} else None  # torch_npu's
        values = [microseconds(value) for value in values]
    try:
        us = np.array(values, np.float64)
    except OverflowError:  # an integer too large for a float
        us = np.array([microseconds(value) for value in values], np.float64)
    return Timed(events, np.where(np.abs(us) < _MAX_US, us, np.nan), exact)


def _parse_exactly(microseconds: Sequence[str]) -> Int64Array | None:
    """Return the ns of decimal texts; None if one is not decimal, or has more digits."""
    try:
        decimals = pa.array(microseconds, pa.string()).cast(pa.decimal128(_DIGITS, 3))
    except pa.ArrowInvalid:
        return None
    words = np.frombuffer(decimals.buffers()[1], np.int64)  # two per number, the lower first
    return words[::2].copy()


_DIGITS = 38
"""Digits of a 128-bit decimal, whose integer counts thousandths: ns."""


def instant(value: object) -> int:
    """Return the ns that the trace's times are relative to; 0 if unknown."""
    ns = whole_number(value)
    return ns if ns is not None and -_MAX_NS < ns < _MAX_NS else 0


def nanoseconds(microseconds: Sequence[float] | npt.NDArray[np.float64]) -> Int64Array:
    """Convert without the rounding error of multiplying floats as large as 1.7e15."""
    values = np.asarray(microseconds, dtype=np.float64)
    whole_us = np.floor(values)
    return whole_us.astype(np.int64) * 1000 + np.rint((values - whole_us) * 1000).astype(np.int64)


def times(listed: Sequence[Any] | Floats) -> pa.Array:
    """Convert µs of any type to ns; null for values that are not numbers or not possible times."""
    try:
        values = np.asarray(listed, dtype=np.float64)  # takes numbers, texts of them, None
    except (TypeError, ValueError, OverflowError):
        values = np.zeros((0, 0))
    odd = not isinstance(listed, np.ndarray) and bool in set(map(type, listed))
    if odd or values.ndim != 1:  # some are not numbers, or true; or all are lists
        values = np.array([microseconds(value) for value in listed], dtype=np.float64)
    valid = np.abs(values) < _MAX_US
    return pa.array(nanoseconds(np.where(valid, values, 0.0)), mask=~valid)


def ints(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return a column of whole numbers; null for anything else, and for what does not fit."""
    kind = kind or pa.int64()
    try:
        column = pa.array(values)  # of their own type: as int64, 2.5 would become 2
        if column.type in (pa.int64(), pa.null()):
            return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError):
        pass
    exact = pa.array([whole_number(value) for value in values], pa.int64())
    limit = 2 ** (kind.bit_width - 1)
    low, high = pa.compute.greater_equal(exact, -limit), pa.compute.less_equal(exact, limit - 1)
    return pa.compute.if_else(pa.compute.and_(low, high), exact, None).cast(kind)


def whole_number(value: object) -> int | None:
    """Return the integer in a JSON value ("25772" in old traces), or None."""
    if type(value) is int:  # nearly always
        return value if value in _INT64 else None
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


def whole_numbers(values: list[Any], absent: int) -> Int64Array:
    """Return an array of whole numbers; `absent` for anything else."""
    return integers(ints(values), absent)


def concat(kind: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """Concatenate tables of a schema, with one dictionary for each column."""
    return pa.concat_tables([kind.empty_table(), *parts]).unify_dictionaries().combine_chunks()


def shifted(table: pa.Table, by: int, *columns: str) -> pa.Table:
    """Add a number to columns: move times from the trace's base to 1970, or renumber."""
    for name in columns if by else ():
        table = set_column(table, name, pa.compute.add(table[name], by))
    return table


class Interned(dict[Any, int]):
    """Distinct values, numbered in order of appearance."""

    def __missing__(self, value: Hashable) -> int:
        number = self[value] = len(self)
        return number


class Threads:
    """Rows of the table of threads, by the trace's process and thread ids."""

    def __init__(self) -> None:
        self._numbers = Interned()
        self._row_as_written = cache(self._row)

    @property
    def ids(self) -> list[tuple[int, int]]:
        """Process and thread of each row."""
        return list(self._numbers)

    def rows(self, events: list[Event]) -> Int64Array:
        """Return the row of each event's thread."""
        pids, tids = [event.pid for event in events], [event.tid for event in events]
        plain = not {*map(type, pids), *map(type, tids)} - {int, str}
        row_of = self._row_as_written if plain else self._row  # True equals 1, lists have no hash
        return np.fromiter(map(row_of, zip(pids, tids, strict=True)), np.int64, len(events))

    def _row(self, place: tuple[Any, Any]) -> int:
        """Return the row of ids: 25738 and "25738" are the same."""
        return self._numbers[tuple(map(_number, place))]


def _number(value: object) -> int:
    """Return an id as a number; for a name, a negative number derived from it alone."""
    number = whole_number(value)
    return -1 - zlib.crc32(str(value).encode()) if number is None else number
