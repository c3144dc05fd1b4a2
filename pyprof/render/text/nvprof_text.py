"""nvprof's tables, for people or as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from tabulate import tabulate

from pyprof import sanitize
from pyprof.answers.prof_answer import SECTIONS

if TYPE_CHECKING:
    from pyprof.answers.prof_answer import NvprofTables

_HEADER = ("Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
_EXPONENT_FROM = 99_999.5
"""From this value on, five digits would need an exponent."""
_NAME_WIDTH = 100


def write(answer: NvprofTables, file: BinaryIO, *, as_csv: bool, raw: bool = False) -> None:
    """Write the tables, for people or as one CSV with times in ns; `raw` keeps formulas."""
    file.write((_csv(answer, raw=raw) if as_csv else _tables(answer)).encode())


def _csv(answer: NvprofTables, *, raw: bool) -> str:
    header = ("Type", "Time(%)", "Time(ns)", "Calls", "Avg(ns)", "Min(ns)", "Max(ns)", "Name")
    lines = [
        (
            r.section,
            None if r.share is None else f"{100 * r.share:.2f}",
            r.total_ns,
            r.calls,
            None if r.mean_ns is None else f"{r.mean_ns:.1f}",
            r.min_ns,
            r.max_ns,
            r.name if raw else sanitize.escape_formula(r.name),
        )
        for r in answer.lines
    ]
    return sanitize.csv_text([header, *lines], quoted=True, raw=True)


def _tables(answer: NvprofTables) -> str:
    shown = []
    for section in SECTIONS:
        for index, row in enumerate(r for r in answer.lines if r.section == section):
            times = (row.total_ns, row.mean_ns, row.min_ns, row.max_ns)
            total, mean, low, high = ("-" if ns is None else time(ns) for ns in times)
            percent = "-" if row.share is None else f"{100 * row.share:.2f}%"
            name = sanitize.single_line(row.name)
            name = name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 3]}..."
            label = f"{section}:" if not index else ""
            shown.append((label, percent, total, row.calls, mean, low, high, name))
    align = ("right",) * 7 + ("left",)
    return tabulate(shown, _HEADER, tablefmt="plain", colalign=align, disable_numparse=True) + "\n"


def time(duration_ns: float) -> str:
    """Format a duration as nvprof did, in the largest unit that keeps it above 1: `27.839us`."""
    size, unit = next((entry for entry in _UNITS if duration_ns >= entry[0]), _UNITS[-1])
    number = duration_ns / size
    return f"{number:.5g}{unit}" if number < _EXPONENT_FROM else f"{number:.0f}{unit}"
