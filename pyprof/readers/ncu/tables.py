"""Parses the CSV that Nsight Compute prints: kernels, each with its metrics.

`--page details` writes a row per metric, `--page raw` a column per metric with units in a second
row, `--print-summary` averages over the calls of a kernel. Lines of the profiler (`==PROF==`) and
of the program come before. Numbers are written in the user's locale, in units that change with
the version and with the size of the number.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pyprof.errors import CaptureError
from pyprof.readers.encodings import utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_NAME, _METRIC, _UNIT, _VALUE = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"
_ID, _PROCESS = "ID", "Process ID"
_AVERAGE, _CALLS = "Average", "Invocations"
"""Columns of `--print-summary`: the mean of each metric, and the number of calls of a kernel."""

_HEADER_LINE = re.compile(r'^(?=.*"?Kernel Name"?)"?(?:ID|Process ID|Kernel Name)"?([,;\t])')
"""Its first separator is that of the table: spreadsheets in much of Europe write semicolons."""
_WHY_EMPTY = {
    "ERR_NVGPUCTRPERM": "ncu was not allowed to read the counters (ERR_NVGPUCTRPERM): run it as "
    "root or let all users read them (docs/capture.md), and profile again",
    "No kernels were profiled": "ncu profiled no kernel: none passed its filters, or processes "
    "that the program started launched them (--target-processes all)",
}
"""By a message of ncu: why its output has no kernels, and what to do."""
_NO_KERNEL = "no kernel in this output of ncu; profile again with --csv --page raw"
_MAX_BYTES = 2 << 30
_FIELD_BYTES = 1 << 24
"""Maximum size of a cell; the csv module's own is 128 KiB."""
_MAX_CALLS = 1_000_000
"""Maximum number of calls in a summary, each of which becomes a row."""


class _Lines(Protocol):
    """What `csv.reader` returns."""

    @property
    def line_num(self) -> int: ...
    def __iter__(self) -> Iterator[list[str]]: ...


class Value(NamedTuple):
    """A cell of the table."""

    text: str
    unit: str


@dataclass(slots=True)
class Kernel:
    """A profiled kernel: the columns that describe it, and its metrics."""

    described: dict[str, str]
    metrics: dict[str, Value] = field(default_factory=dict)
    calls: int | None = None
    """The number of calls that metrics are averaged over; None if they are of one call."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The contents of a file."""

    kernels: list[Kernel]
    """In the order of their first rows; in a summary, one per call."""
    lost_lines: int = 0
    """Lines swallowed by an unterminated quotation."""
    duplicates: int = 0
    """Kernels that were left out because they are listed twice."""


def text_of(path: Path) -> str:
    """Return the text of a file, as UTF-8 or, from PowerShell, UTF-16."""
    if path.stat().st_size > _MAX_BYTES:
        raise CaptureError(f"{path}: more than 2 GiB of CSV; export fewer kernels or metrics")
    data = path.read_bytes()
    return utf8(data).decode(errors="replace").replace("\0", "")


def profile(path: Path, named: Callable[[str], str | None]) -> Profile:
    """Read the kernels of a file, with the metrics for which `named` returns a name.

    Raises CaptureError if there are none.
    """
    text = text_of(path)
    try:
        parts = [_kernels(lines, named) for lines in _tables(text)]
    except csv.Error as error:
        raise CaptureError(f"{path}: damaged ({error}); export it again") from None
    kernels = [kernel for part in parts for kernel in part.kernels]
    if not kernels:
        why = (why for said, why in _WHY_EMPTY.items() if said in text)
        raise CaptureError(f"{path}: {next(why, _NO_KERNEL)}")
    if sum(kernel.calls or 1 for kernel in kernels) > _MAX_CALLS + len(kernels):
        raise CaptureError(f"{path}: a summary of too many calls; export without --print-summary")
    once = _drop_duplicates(kernels)
    every_call = [kernel for kernel in once for _ in range(kernel.calls or 1)]
    lost_lines = sum(part.lost_lines for part in parts)
    return Profile(every_call, lost_lines, duplicates=len(kernels) - len(once))


def _drop_duplicates(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Keep one of kernels with equal numbers and metrics, as in outputs that were joined twice."""
    first: dict[object, Kernel] = {}
    for index, kernel in enumerate(kernels):
        is_numbered = _ID in kernel.described and kernel.metrics
        key = (*kernel.described.items(), *kernel.metrics.items()) if is_numbered else index
        first.setdefault(key, kernel)
    return [*first.values()]


def _tables(text: str) -> Iterator[list[str]]:
    """Yield the lines of each table, its header first."""
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        if _HEADER_LINE.match(line):
            if lines:
                yield lines
            lines = [line]
        elif lines:
            lines.append(line)
    if lines:
        yield lines


def _kernels(lines: Sequence[str], named: Callable[[str], str | None]) -> Profile:
    before = csv.field_size_limit(_FIELD_BYTES)
    try:
        match = _HEADER_LINE.match(lines[0])
        table = csv.reader(lines, delimiter=match[1] if match else ",", strict=False)
        header = [name.strip() for name in next(table)]
        if _NAME not in header:
            return Profile([])
        is_long = _METRIC in header and (_VALUE in header or _AVERAGE in header)
        lost: list[int] = []
        kernels = (_read_long if is_long else _read_wide)(
            header, _rows(table, len(header), lost), named
        )
        return Profile(kernels, sum(lost))
    finally:
        csv.field_size_limit(before)


def _rows(table: _Lines, width: int, lost: list[int]) -> Iterator[list[str]]:
    """Yield the rows; count the lines that a row swallowed for want of a closing quotation mark.

    Descriptions of rules may span several lines, in rows of the right width.
    """
    line = table.line_num
    for row in table:
        if table.line_num - line > 1 and len(row) != width:
            lost.append(table.line_num - line - 1)
        line = table.line_num
        yield row


def _read_long(
    header: list[str], rows: Iterator[list[str]], named: Callable[[str], str | None]
) -> list[Kernel]:
    """Read one row per metric; rows of rules have none."""
    index = {name: column for column, name in enumerate(header)}
    metric, unit, name = index[_METRIC], index.get(_UNIT), index[_NAME]
    value = index[_VALUE] if _VALUE in index else index[_AVERAGE]
    described = [(key, column) for key, column in index.items() if column < metric]
    keys = [index[name] for name in (_ID, _PROCESS, _NAME) if name in index]
    if _ID not in index:  # kernels without a number: all that describes them
        keys = [
            column for name, column in index.items() if column < metric and name != "Section Name"
        ]
    kernels: dict[tuple[str, ...], Kernel] = {}
    for row in rows:
        if len(row) <= max(metric, value, *keys) or not row[name]:
            continue
        key = tuple(row[column] for column in keys)
        kernel = kernels.get(key)
        if kernel is None:
            kernel = kernels[key] = Kernel({key: row[column] for key, column in described})
            calls = kernel.described.get(_CALLS)
            if calls is not None and calls.isdecimal():
                kernel.calls = min(max(int(calls[:9]), 1), 2 * _MAX_CALLS)
        if meant := named(row[metric]):
            spelt = Value(row[value], row[unit] if unit is not None else "")
            if spelt.unit == "%" and meant in _TWO_MEANINGS:  # not bytes per second
                meant = f"{meant} [%]"
            kernel.metrics.setdefault(meant, spelt)
    return [*kernels.values()]


_TWO_MEANINGS = frozenset({"Memory Throughput"})
"""Titles of a rate in bytes per second and of a share in %."""


def _read_wide(
    header: list[str], rows: Iterator[list[str]], named: Callable[[str], str | None]
) -> list[Kernel]:
    """Read one column per metric; the row without a kernel has the units."""
    name = header.index(_NAME)
    metrics = [(column, meant) for column, text in enumerate(header) if (meant := named(text))]
    described = [(column, text) for column, text in enumerate(header) if text in DESCRIBING]
    units: list[str] = []
    kernels = []
    for row in rows:
        if len(row) <= name:
            continue
        if not row[name]:
            units = units or row
            continue
        kernel = Kernel({text: row[column] for column, text in described if column < len(row)})
        for column, metric in metrics:
            if column < len(row):
                unit = units[column] if column < len(units) else ""
                kernel.metrics.setdefault(metric, Value(row[column], unit))
        kernels.append(kernel)
    return kernels


DESCRIBING = (_ID, _PROCESS, _NAME, "Stream", "Device", "CC", "Block Size", "Grid Size")
"""Columns that identify a row's kernel."""


_SEPARATORS = r"'\u2019\s\u00a0\u2009\u202f\ufffd"
"""Between groups of digits; the last stands for any of these in another encoding than UTF-8."""
_NUMBER = re.compile(rf"[-+]?\d[\d.,{_SEPARATORS}]*(?:[eE][-+]?\d+)?")
_GROUPS = re.compile(rf"[{_SEPARATORS}]")
_COMMA = re.compile(r"\d,\d{1,2}$|\d,\d{4,}$|\.\d{3},\d|^0,\d")
_POINT = re.compile(r"\d\.\d{1,2}$|\d\.\d{4,}$|,\d{3}\.\d|^0\.\d")
"""Numbers that show which is the decimal point, the comma or the point: `1,5` and `1.234,5`."""


class Numbers:
    """Parses numbers as one file writes them."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._kernels = kernels

    @cached_property
    def _comma(self) -> bool:
        """Whether the comma is the decimal point of this file, as in much of Europe."""
        comma = point = 0
        for kernel in self._kernels:
            for value in kernel.metrics.values():
                number, _, _ = value.text.partition(" (")
                comma += _COMMA.search(number) is not None
                point += _POINT.search(number) is not None
        return comma > point

    def read(self, value: Value | None) -> float | None:
        """Return a value in units without a prefix: seconds, bytes, Hz; None if not a number."""
        # with several instances, as in "7 (3; 4)", the sum comes first
        match = None if value is None else _NUMBER.match(value.text.strip())
        if value is None or match is None:
            return None
        digits = _GROUPS.sub("", match[0])
        group, point = (".", ",") if self._comma else (",", ".")
        try:
            number = float(digits.replace(group, "").replace(point, "."))
        except ValueError:
            return None
        return number * factor(value.unit) if math.isfinite(number) else None


_PREFIX = {"n": 1e-9, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6,
           "G": 1e9, "T": 1e12, "P": 1e15, "": 1.0}  # fmt: skip
_MEASURE = re.compile(r"([nuµμmKkMGTP]?)(second|s|byte|B|hz|Hz|inst|cycle|block|sector)s?")


@lru_cache(maxsize=1024)
def factor(unit: str) -> float:
    """Return the factor to the base unit: 1e-6 for `usecond`, 1e9 for `Ghz`."""
    above, _, below = unit.strip().partition("/")
    return _prefix(above) / _prefix(below)


def _prefix(measure: str) -> float:
    match = _MEASURE.fullmatch(measure.strip())
    return _PREFIX[match[1]] if match else 1.0
