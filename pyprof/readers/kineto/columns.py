"""Values of many events as columns: times, whole numbers, threads. Foreign values become null."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy.typing as npt

    from pyprof.arrays import Ints

_INT64 = range(-(2**63), 2**63)

_MOST_NS = 2**61
"""Times beyond it, 73 years, stand for nothing; sums of a few below it fit an int64."""


def microseconds(value: object) -> float | None:
    """Give the time or the length that a JSON value stands for, or None."""
    if type(value) not in (int, float):  # nearly always one of them
        if not isinstance(value, str):
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    return value if -_MOST_NS < value * 1000 < _MOST_NS else None  # type: ignore[operator, return-value]


def instant(value: object) -> int:
    """Give the ns that the trace's times are relative to; 0 where the value stands for none."""
    ns = whole_number(value)
    return ns if ns is not None and -_MOST_NS < ns < _MOST_NS else 0


MOST_US = 2**62 / 1000
"""Times and lengths beyond this are none: their nanoseconds hardly fit 64 bits."""


def nanoseconds(microseconds: Sequence[float] | npt.NDArray[np.float64]) -> Ints:
    """Convert without the loss that multiplying a float of 1.7e15 would bring."""
    values = np.asarray(microseconds, dtype=np.float64)
    whole_us = np.floor(values)
    return whole_us.astype(np.int64) * 1000 + np.rint((values - whole_us) * 1000).astype(np.int64)


def times(microseconds: Sequence[Any]) -> pa.Array:
    """Convert values of any type; what is no number, or none that a time can be, is null."""
    try:
        values = np.asarray(microseconds, dtype=np.float64)  # takes numbers, texts of them, None
    except (TypeError, ValueError, OverflowError):
        values = np.zeros((0, 0))
    if values.ndim != 1:  # some are no numbers; or all are lists
        values = np.array([_number_or_nan(value) for value in microseconds], dtype=np.float64)
    valid = np.abs(values) < MOST_US
    return pa.array(nanoseconds(np.where(valid, values, 0.0)), mask=~valid)


def _number_or_nan(value: object) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")


def ints(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Give a column of whole numbers; what is none, or does not fit, is null."""
    kind = kind or pa.int64()
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError):
        exact = pa.array([whole_number(value) for value in values], pa.int64())
        limit = 2 ** (kind.bit_width - 1)
        fits = pa.compute.and_(pa.compute.less(exact, limit - 1), pa.compute.greater(exact, -limit))
        return pa.compute.if_else(fits, exact, None).cast(kind)


def whole_number(value: object) -> int | None:
    """Give the whole number that a JSON value stands for ("25772" in old traces), or None."""
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


class Interned:
    """Numbers for distinct values, in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __getitem__(self, value: Hashable) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = len(self._numbers)
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    def values(self) -> Iterable[Any]:
        """Give the values, each at the place of its number."""
        return self._numbers.keys()


class Threads:
    """Rows of the table of threads, by what the trace calls process and thread."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Any, Any], int] = {}
        self._numbers = Interned()

    @property
    def ids(self) -> list[tuple[int, int]]:
        """Process and thread of each row."""
        return list(self._numbers.values())

    def row(self, pid: Any, tid: Any) -> int:  # noqa: ANN401 - as found in the trace
        """Give the thread's row."""
        if type(pid) not in _NAMES or type(tid) not in _NAMES:  # a list is no key
            return self._numbers[_number(pid), _number(tid)]
        row_number = self._rows.get((pid, tid))
        if row_number is None:  # 25738 and "25738" are the same thread
            row_number = self._rows[pid, tid] = self._numbers[_number(pid), _number(tid)]
        return row_number


_NAMES = (int, str)
"""Types of what a trace calls a process or a thread."""


def _number(value: object) -> int:
    """Give an id as a number; a name gets a negative one that depends on nothing else."""
    number = whole_number(value)
    return -1 - zlib.crc32(str(value).encode()) if number is None else number
