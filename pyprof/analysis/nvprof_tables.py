"""nvprof's two tables, from any capture: where GPU time went, and where API time went.

Of a capture without a GPU the first is of the ops on the CPU.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tabulate import tabulate

from pyprof import cli, readers, sanitize, schema
from pyprof.errors import CaptureError
from pyprof.parse import parse
from pyprof.parse.record_file import STDIN, load
from pyprof.prof.processor import CPU, processor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.records.records import Records
    from pyprof.schema import Capture

_HEADER = ("Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
_EXPONENT_FROM = 99_999.5
"""Five digits do not spell it."""
_NAME_WIDTH = 100
_SECTIONS = ("GPU activities", "CPU ops", "API calls")


@dataclass(frozen=True, slots=True)
class NvprofRow:
    """One line of a table; times in ns, None where none of its calls has a time that is known."""

    section: str
    percent: float | None
    total_ns: int | None
    calls: int
    mean_ns: float | None
    min_ns: int | None
    max_ns: int | None
    name: str


def rows(source: str, *, quiet: bool = False) -> list[NvprofRow]:
    """Tabulate a capture; of records, which hold no API calls, the GPU activities alone.

    Says so on stderr, unless `quiet`.
    """
    path = Path(source)
    if source == STDIN or not readers.is_capture(path):
        tables = _activities(load(source))
        if not quiet:
            cli.warn(["records have no API calls; use the capture itself to see them"])
        return tables
    capture = readers.read(path)
    tables = _activities(parse(capture)) if capture.activities.num_rows else []
    calls = _api_calls(capture)
    duration = pc.subtract(calls.column("end"), calls.column("start"))
    tables += _section(_SECTIONS[2], calls.column("name").cast(pa.string()), duration)
    if not tables:
        raise CaptureError(f"{source}: contains neither GPU work nor API calls; capture again")
    return tables


def _api_calls(capture: Capture) -> pa.Table:
    """Leave out what stands for an op on the CPU, which is no call of an API."""
    work = capture.activities
    ops = work.filter(pc.equal(work.column("kind"), schema.CPU)).column("corr")
    return capture.calls.filter(pc.invert(pc.is_in(capture.calls.column("corr"), ops)))


def _activities(records: Records) -> list[NvprofRow]:
    section = _SECTIONS[processor_of(records) == CPU]
    return _section(section, records.arrow("kLongName"), records.arrow("kDuration"))


def _section(section: str, names: pa.Array, duration: pa.Array) -> list[NvprofRow]:
    measures = [("ns", name) for name in ("sum", "mean", "min", "max")]
    ones = np.ones(len(names), np.int64)
    rows = pa.table({"name": names, "ns": duration, "row": ones})
    sums = rows.group_by("name", use_threads=False).aggregate([*measures, ("row", "sum")])
    total_ns = max(pc.sum(sums.column("ns_sum")).as_py() or 0, 1)
    ordered = sums.sort_by([("ns_sum", "descending"), ("name", "ascending")]).to_pylist()
    return [
        NvprofRow(
            section,
            None if row["ns_sum"] is None else 100 * row["ns_sum"] / total_ns,
            row["ns_sum"],
            row["row_sum"],
            row["ns_mean"],
            row["ns_min"],
            row["ns_max"],
            row["name"],
        )
        for row in ordered
    ]


def write(
    table_rows: Sequence[NvprofRow], file: BinaryIO, *, as_csv: bool, raw: bool = False
) -> None:
    """Write the tables, for people or as one CSV with times in ns; `raw`: formulas as they are."""
    file.write((_csv(table_rows, raw=raw) if as_csv else _tables(table_rows)).encode())


def _csv(table_rows: Sequence[NvprofRow], *, raw: bool) -> str:
    header = ("Type", "Time(%)", "Time(ns)", "Calls", "Avg(ns)", "Min(ns)", "Max(ns)", "Name")
    lines = [
        (
            r.section,
            None if r.percent is None else f"{r.percent:.2f}",
            r.total_ns,
            r.calls,
            None if r.mean_ns is None else f"{r.mean_ns:.1f}",
            r.min_ns,
            r.max_ns,
            r.name if raw else sanitize.escape_formula(r.name),
        )
        for r in table_rows
    ]
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows((header, *lines))
    return file.getvalue()


def _tables(table_rows: Sequence[NvprofRow]) -> str:
    shown = []
    for section in _SECTIONS:
        for place, row in enumerate(r for r in table_rows if r.section == section):
            times = (row.total_ns, row.mean_ns, row.min_ns, row.max_ns)
            total, mean, low, high = ("-" if ns is None else time(ns) for ns in times)
            percent = "-" if row.percent is None else f"{row.percent:.2f}%"
            name = sanitize.single_line(row.name)
            name = name if len(name) <= _NAME_WIDTH else f"{name[: _NAME_WIDTH - 3]}..."
            label = f"{section}:" if not place else ""
            shown.append((label, percent, total, row.calls, mean, low, high, name))
    align = ("right",) * 7 + ("left",)
    return tabulate(shown, _HEADER, tablefmt="plain", colalign=align, disable_numparse=True) + "\n"


def time(duration_ns: float) -> str:
    """Spell a duration as nvprof did, in the largest unit that keeps it above 1: `27.839us`."""
    size, unit = next((entry for entry in _UNITS if duration_ns >= entry[0]), _UNITS[-1])
    number = duration_ns / size
    return f"{number:.5g}{unit}" if number < _EXPONENT_FROM else f"{number:.0f}{unit}"
