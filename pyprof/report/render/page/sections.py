"""Tables of a page: cells with the number that they sort by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.prof.processor import CPU
from pyprof.report.analysis.idle import CAUSES
from pyprof.report.analysis.op_totals import totals
from pyprof.report.render.summary import USUAL_VIAS
from pyprof.report.render.text import UNKNOWN, count, duration, part_name, percent, short_line
from pyprof.report.render.text import number as spelt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyprof.prof.table import Table
    from pyprof.report.analysis.overview import Brief
    from pyprof.report.analysis.source_lines import SourceLines
    from pyprof.report.analysis.utilization import Utilization


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. A text has neither number nor part."""

    text: str
    number: float | None = None
    """What it sorts by; None for a text, and for a number that is not known."""
    part: str | None = None
    """Length of a bar behind it, in %."""
    note: str = ""
    """Shown while the pointer rests on it."""
    sort: str = ""
    """Class that colours a text."""


@dataclass(frozen=True, slots=True)
class Sortable:
    """A table."""

    columns: Sequence[tuple[str, bool]]
    """Title, and whether the column is of texts."""
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    """Rows that the page leaves out to stay small."""


_CUT = 300


def text(value: str | None, note: str = "", sort: str = "") -> Cell:
    """Make a cell of text; very long names are cut, and shown to be."""
    shown = UNKNOWN if value is None else value
    return Cell(shown if len(shown) <= _CUT else f"{shown[:_CUT]}...", note=note[:_CUT], sort=sort)


def number(value: float | None, spelt: str) -> Cell:
    """Make a cell of a number as it is spelt."""
    return Cell(spelt, value)


def share(fraction: float | None) -> Cell:
    """Make a cell of a share with a bar behind it."""
    if fraction is None:
        return Cell(UNKNOWN)
    percent = 100 * fraction
    return Cell(f"{percent:.1f} %", percent, f"{min(percent, 100):.1f}")


# What the report's page says in words and tables, made from what was summed up.


_MOST_ROWS = 500
_FOLDERS = re.compile(r"[^\\/\s'\"(]*(?:[\\/][^\\/\s'\"]+)+[\\/]")


def without_folders(sentence: str) -> str:
    """Leave folders out of the paths in a sentence: they may tell who captured it, and where."""
    return _FOLDERS.sub("", sentence)


def cards(brief: Brief) -> Iterator[tuple[str, str, str]]:
    """Give title, value and note of each headline number."""
    on = brief.coverage.processor
    rows = f"{brief.layers.rows:,} {'ops' if on == CPU else 'kernels and copies'}"
    yield f"{on} time", duration(brief.coverage.total_ns), rows
    if (timed := brief.times) is not None:
        span = sum(device.span_ns for device in timed.devices)
        busy = sum(device.busy_ns for device in timed.devices)
        exposed = sum(device.exposed_communication_ns for device in timed.devices)
        yield (
            f"{on} busy",
            f"{percent(busy / span if span else None)} %",
            f"{duration(busy)} of {duration(span)}",
        )
        yield f"{on} idle", duration(span - busy), "no stream had work"
        if any(device.communication_ns for device in timed.devices):
            yield "communication exposed", duration(exposed), "while nothing was computed"
    if brief.averaged is not None:
        warm = brief.steps.warm_up
        note = f"mean of {brief.step_count:,} of {len(brief.steps):,} steps"
        note += f", {warm} are warm-up" if warm and not brief.chosen else ""
        step = duration(brief.steps.mean_ns(brief.averaged))
        yield "a step", step, f"{note}; from {brief.steps.origin}"
    yield from _utilization(brief.utilization)
    yield "cost known", f"{brief.coverage.percent:.1f} %", f"of {on} time has a FLOP and byte count"


def _utilization(usage: Utilization) -> Iterator[tuple[str, str, str]]:
    if usage.why:
        yield "MFU", "unknown", usage.why
    else:
        yield "MFU", f"{percent(usage.mfu)} %", f"of {usage.peak_flops_label}"
        yield "HFU", f"{percent(usage.hfu)} %", "also counts recomputed work"
    if usage.mbu is not None:
        yield "MBU", f"{percent(usage.mbu)} %", "of memory bandwidth, in decode steps"


def families(brief: Brief) -> list[tuple[str, str, float]]:
    """Give name, time and share of each family of ops, the longest first."""
    total_ns = max(sum(brief.families.values()), 1)
    return [(name, duration(ns), ns / total_ns) for name, ns in brief.families.items()]


def vias(brief: Brief) -> list[tuple[str, str, float]]:
    """Give how ops were found, with time and share; [] if all by a launch or the forward op."""
    if not set(brief.vias) - {*USUAL_VIAS, ""}:
        return []
    total_ns = sum(brief.vias.values()) or 1
    return [(name or "not found", duration(ns), ns / total_ns) for name, ns in brief.vias.items()]


def causes(brief: Brief) -> list[tuple[str, str, str, float]]:
    """Give name, meaning, time and share of each cause of idle time, the longest first."""
    if brief.times is None:
        return []
    total: dict[str, int] = {}
    for device in brief.times.devices:
        for cause, ns in device.idle.items():
            total[cause] = total.get(cause, 0) + ns
    total_ns = max(sum(total.values()), 1)
    ordered = sorted(total.items(), key=lambda entry: -entry[1])
    return [
        (cause, CAUSES.get(cause, cause), duration(ns), ns / total_ns)
        for cause, ns in ordered
        if ns
    ]


def phases(brief: Brief) -> list[tuple[str, str, float]]:
    """Give name, time and share of each part of a step."""
    total_ns = max(sum(brief.phases.values()), 1)
    return [(part_name(name), duration(ns), ns / total_ns) for name, ns in brief.phases.items()]


def advice(brief: Brief) -> list[dict[str, Any]]:
    """Give the advice with its evidence, in its order."""
    return [
        {
            "title": without_folders(entry.title),
            "action": without_folders(entry.action),
            "gain": None if entry.gain_ns is None else duration(entry.gain_ns),
            "evidence": [
                (proof.what, short_line(proof.line), count(proof.count), duration(proof.total_ns),
                 without_folders(proof.detail))
                for proof in entry.evidence
            ],
        }
        for entry in brief.advice
    ]  # fmt: skip


def ops(brief: Brief) -> Sortable:
    """Tabulate the ops that take most time."""
    columns = [("op", True), ("direction", True), ("line", True), ("time", False),
               ("share", False), ("calls", False), ("kernels", False), ("TFLOP/s", False),
               ("GB/s", False), ("efficiency", False), ("bound", True),
               ("Tensor Cores", True)]  # fmt: skip
    rows = [
        [
            text(op.op or op.kernel),
            text(part_name(op.dir)),
            text(short_line(op.line)),
            number(op.total_ns, duration(op.total_ns)),
            share(op.share),
            number(op.calls, count(op.calls)),
            number(op.kernels, count(op.kernels)),
            _rate(op.flops_per_s, 1e12),
            _rate(op.bytes_per_s, 1e9),
            share(op.efficiency),
            text(op.bound),
            text({"1": "used", "0": "not used", "?": "unknown"}.get(op.tc or "")),
        ]
        for op in brief.ops[:_MOST_ROWS]
    ]
    return Sortable(columns, rows, max(len(brief.ops) - _MOST_ROWS, 0))


KERNELS = ("kernel", "op", "tc")
"""What the sums that `kernels` takes are by."""


def kernels(sums: pa.Table, full: Mapping[str, str]) -> Sortable:
    """Tabulate the kernels that take most time; the full name shows under the pointer."""
    columns = [("kernel", True), ("op", True), ("time", False), ("share", False), ("calls", False),
               ("mean", False), ("TFLOP/s", False), ("GB/s", False),
               ("Tensor Cores", True)]  # fmt: skip
    groups = totals(sums)
    rows = [
        [
            text(group.key[0], note=full.get(group.key[0] or "", "")),
            text(group.key[1]),
            number(group.time_ns, duration(group.time_ns)),
            share(group.share),
            number(group.calls, count(group.calls)),
            number(group.time_ns / group.calls, duration(group.time_ns / group.calls)),
            _rate(group.flops_per_s, 1e12),
            _rate(group.bytes_per_s, 1e9),
            text({"1": "used", "0": "not used", "?": "unknown"}.get(group.key[2] or "")),
        ]
        for group in groups[:_MOST_ROWS]
    ]
    return Sortable(columns, rows, max(len(groups) - _MOST_ROWS, 0))


def full_names(table: Table) -> dict[str, str]:
    """Give a full name for each short one."""
    full, short = (table.records.coded(name) for name in ("kLongName", "kShortName"))
    used, row = np.unique(short.index, return_index=True)
    return {
        short.values[place].replace(" ", "_"): full.values[name]
        for place, name in zip(used.tolist(), full.index[row].tolist(), strict=True)
        if place >= 0 and name >= 0
    }


def line_table(totalled: SourceLines) -> Sortable:
    """Tabulate the user's source lines, by the file's name alone."""
    columns = [("file", True), ("line", False), ("time", False), ("share", False),
               ("itself", False), ("op calls", False)]  # fmt: skip
    total_ns = max(totalled.total_ns, 1)
    timed = [(file.path, line) for file in totalled.files for line in file.lines]
    timed.sort(key=lambda entry: -entry[1].total_ns)
    rows: list[list[Cell]] = [
        [
            text(short_line(path)),
            number(line.number, str(line.number)),
            number(line.total_ns, duration(line.total_ns)),
            share(line.total_ns / total_ns),
            number(line.own_ns, duration(line.own_ns)),
            number(line.calls, count(line.calls)),
        ]
        for path, line in timed[:_MOST_ROWS]
    ]
    return Sortable(columns, rows, max(len(timed) - _MOST_ROWS, 0))


def _rate(value: float | None, unit: float) -> Cell:
    scaled = None if value is None else value / unit
    return number(scaled, spelt(scaled))
