"""A comparison as texts, alike in every output."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from pyprof import safe
from pyprof.report.diff.compare import SAME_BELOW
from pyprof.report.render import text as markdown
from pyprof.report.render.text import (
    UNKNOWN,
    amount,
    change,
    count,
    cut,
    cut_left,
    duration,
    heading,
    number,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.report.diff.compare import Change, Comparison

LABELS = {
    "time": "{} time, summed",
    "busy": "{} busy",
    "idle": "{} idle",
    "step": "median step",
    "kernels": "kernels and copies",
    "flops": "FLOPs, where known",
    "bytes": "bytes needed, where known",
    "dram": "DRAM traffic, measured",
    "energy": "energy while kernels ran",
    "clock": "SM clock, measured",
    "tensor": "Tensor Cores active (%)",
}
NOTHING = f"no op changed by more than {100 * SAME_BELOW:g} %"
"""Stands for a list of changes without any."""
METRIC_HEADER = ("", "A", "B", "change", "change (%)")


def basis(comparison: Comparison) -> str:
    """Say what the numbers are of."""
    if comparison.per_step is None:
        return "totals of both captures (no comparable steps were found)"
    a, b = comparison.per_step
    return f"per step: A has {a:,}, B {b:,}"


def metrics(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """Give a row for each metric that is known in one of them."""
    for metric in comparison.metrics.values():
        if metric.a is None and metric.b is None:
            continue
        a, b, delta = (_spelt(value, metric.unit) for value in (metric.a, metric.b, metric.delta))
        yield (
            LABELS[metric.name].format(comparison.processor),
            a,
            b,
            _signed(delta, metric.delta),
            change(metric.relative),
        )


def _spelt(value: float | None, unit: str) -> str:
    if unit == "ns":
        return duration(value)
    if unit == "%":
        return number(value)
    return amount(value, _UNITS[unit]) if unit else count(value)


_UNITS = {"flop": "FLOP", "bytes": "B", "j": "J", "hz": "Hz"}


def _signed(text: str, value: float | None) -> str:
    return f"+{text}" if value is not None and value > 0 else text


def header(comparison: Comparison) -> tuple[str, ...]:
    """Name the columns of `changes`."""
    return (*comparison.keys, "", "A", "B", "change", "change (%)", "calls A", "calls B")


def changes(comparison: Comparison, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Give a row for each op that changed, the largest difference first."""
    for entry in comparison.differing[:limit]:
        yield (*_names(entry.key), *change_cells(entry))


def _names(key: Sequence[str | None]) -> Iterator[str]:
    for part in key:
        yield UNKNOWN if part is None else part


def change_cells(entry: Change) -> tuple[str, ...]:
    """Spell one change."""
    return (
        entry.status,
        duration(entry.a_ns) if entry.a else UNKNOWN,
        duration(entry.b_ns) if entry.b else UNKNOWN,
        _signed(duration(entry.delta_ns), entry.delta_ns),
        change(entry.relative) if entry.b else UNKNOWN,
        *(count(side.calls) if side else UNKNOWN for side in (entry.a, entry.b)),
    )


# A comparison's changes as CSV: all of them, times in ns, unknown empty.


_NUMBERS = ("status", "a_ns", "b_ns", "change_ns", "change", "a_calls", "b_calls",
            "a_rows", "b_rows")  # fmt: skip


def csv_text(comparison: Comparison, *, raw: bool = False) -> str:
    """Write RFC 4180; `change` is a fraction of A, calls and rows are totals.

    `raw`: texts that spreadsheets take for formulas stay as they are.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*comparison.keys, *_NUMBERS])
    for entry in comparison.changes:
        sides = (entry.a, entry.b)
        writer.writerow(
            [
                *(entry.key if raw else map(safe.field, entry.key)),
                entry.status,
                entry.a_ns if entry.a else None,
                entry.b_ns if entry.b else None,
                entry.delta_ns,
                entry.relative,
                *(side.calls if side else None for side in sides),
                *(side.rows if side else None for side in sides),
            ]
        )
    return file.getvalue()


# A comparison as tables on the terminal.


_KEY_WIDTH = 32


_PATHS = ("layer", "line")


def comparison_lines(comparison: Comparison, limit: int | None) -> Iterator[str]:
    """Give the totals, then the largest changes."""
    yield heading(basis(comparison))
    if comparison.devices:
        yield comparison.devices
    yield from table(metrics(comparison), METRIC_HEADER, left=(0,))
    yield ""
    yield heading("largest changes")
    keys = len(comparison.keys)
    rows = [
        (*map(_name, comparison.keys, row[:keys]), *row[keys:])
        for row in changes(comparison, limit)
    ]
    if rows:
        yield from table(rows, header(comparison), left=range(keys + 1))
    else:
        yield NOTHING
    if limit is not None and (more := len(comparison.differing) - limit) > 0:
        yield f"... and {more:,} more; --top shows them"


def _name(key: str, text: str) -> str:
    return (cut_left if key in _PATHS else cut)(text, _KEY_WIDTH)


# A comparison as Markdown, for a pull request.


def markdown_text(comparison: Comparison, limit: int | None, broken: Sequence[str] = ()) -> str:
    """Write the limits that were broken, the totals, and the largest changes."""
    parts = [f"# {comparison.processor} time compared\n"]
    if broken:
        parts += [*(f"- **failed** {markdown.escape(sentence)}" for sentence in broken), ""]
    parts += [
        f"{markdown.escape(basis(comparison))}\n",
        *([f"{markdown.escape(comparison.devices)}\n"] if comparison.devices else []),
        markdown.markdown_table(METRIC_HEADER, list(metrics(comparison))),
    ]
    rows = list(changes(comparison, limit))
    listed = markdown.markdown_table(header(comparison), rows) if rows else f"{NOTHING}\n"
    parts += ["## Largest changes\n", listed]
    return "\n".join(parts)
