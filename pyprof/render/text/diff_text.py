"""A comparison as text: on the terminal, as CSV and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.analysis.diff.compare import REMOVED, SAME_BELOW, held_text
from pyprof.analysis.diff.noise import FEW, LEVEL, STEPS
from pyprof.answers.diff_answer import waterfall
from pyprof.render.text import formatting as markdown
from pyprof.render.text.formatting import (
    DASH,
    amount,
    change,
    count,
    duration,
    heading,
    layout_table,
    number,
    percent,
    wrapped,
)
from pyprof.render.text.layout.text_width import cut_middle, cut_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.analysis.diff.compare import Change, Comparison, Metric
    from pyprof.answers.diff_answer import Stage

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
"""Shown instead of an empty list of changes."""
METRIC_HEADER = ("", "A", "B", "change", "change (%)", "± (%)", "")
_NOT_SIGNIFICANT = "no significant change"
_NEARLY_ALL = 0.995
"""Steps with a smaller share of the time leave something out, such as a warm-up."""


def basis(comparison: Comparison) -> str:
    """Say whether the numbers are per step, or totals and why."""
    if comparison.per_step is None:
        return f"totals of both captures ({comparison.why_totals})"
    a, b = comparison.per_step
    held = comparison.held
    part = f"; they hold {held_text(held)}" if held and min(held) < _NEARLY_ALL else ""
    return f"per step: A has {a:,}, B {b:,}{part}"


def certainty(comparison: Comparison) -> str:
    """Say what intervals rest on, or why there are none."""
    basis = comparison.noise
    if basis.unit is None:
        return f"noise is unknown: {basis.why}; changes may be chance"
    few = basis.unit == STEPS and min(basis.counts) < FEW
    return (
        f"±: {100 * LEVEL:g} % interval, by the spread over {basis.unit} (between runs: unknown)"
        + (f"; fewer than {FEW} steps tell only large changes from noise" if few else "")
    )


def metrics(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric that is known on either side."""
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
            *_interval(metric),
        )


def _interval(metric: Metric) -> tuple[str, str]:
    if metric.interval is None or metric.delta is None:
        return "", ""
    half = percent(metric.interval.half / metric.a) if metric.a else ""
    return half, "" if metric.interval.significant or not metric.interval.half else _NOT_SIGNIFICANT


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
    titles = ("", "A", "B", "change", "change (%)", "± (%)", "calls A", "calls B")
    return (*comparison.keys, *titles)


def changes(comparison: Comparison, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Yield a row for each op that changed, the largest difference first."""
    for entry in comparison.differing[:limit]:
        names = (DASH if part is None else part for part in entry.key)
        yield (*names, *change_cells(entry))


def change_cells(entry: Change) -> tuple[str, ...]:
    """Format the cells of one change."""
    return (
        entry.status,
        duration(entry.a_ns) if entry.a else DASH,
        duration(entry.b_ns) if entry.b else DASH,
        _signed(duration(entry.delta_ns), entry.delta_ns),
        change(entry.relative) if entry.b else DASH,
        percent(half_of(entry)),
        *(count(side.calls) if side else DASH for side in (entry.a, entry.b)),
    )


def half_of(entry: Change) -> float | None:
    """Return the half-width of the interval as a fraction of A; None if either is unknown."""
    matched = entry.a and entry.b and entry.a_ns
    return entry.interval.half / entry.a_ns if matched and entry.interval else None


_NUMBERS = ("status", "a_ns", "b_ns", "change_ns", "change", "a_calls", "b_calls",
            "a_rows", "b_rows", "interval_ns", "p", "causes")  # fmt: skip


def csv_text(comparison: Comparison) -> str:
    """Write RFC 4180; `change` is a fraction of A, calls and rows are totals."""
    rows = (
        [
            *entry.key,
            entry.status,
            entry.a_ns if entry.a else None,
            entry.b_ns if entry.b else None,
            entry.delta_ns,
            entry.relative,
            *(side.calls if side else None for side in (entry.a, entry.b)),
            *(side.rows if side else None for side in (entry.a, entry.b)),
            entry.interval.half if entry.interval else None,
            entry.interval.p if entry.interval else None,
            "; ".join(map(str, map(sanitize.escape_formula, entry.causes))),
        ]
        for entry in comparison.changes
    )
    return sanitize.csv_text([[*comparison.keys, *_NUMBERS], *rows])


_KEY_WIDTH = 32


def comparison_lines(comparison: Comparison, limit: int | None) -> Iterator[str]:
    """Yield the totals, then the largest changes."""
    yield heading(basis(comparison))
    yield from wrapped(certainty(comparison))
    for cause in comparison.causes:
        yield from wrapped(cause)
    yield from layout_table([*metrics(comparison)], METRIC_HEADER, (0, 6))
    yield ""
    if stages := waterfall(comparison):
        yield heading(f"from A to B, {comparison.processor} time")
        yield from layout_table([*stage_rows(stages)], STAGE_HEADER, (0,))
        yield ""
    yield heading("largest changes")
    keys = len(comparison.keys)
    rows = [
        (
            *(
                _cutter(key)(text, _KEY_WIDTH)
                for key, text in zip(comparison.keys, row, strict=False)
            ),
            *row[keys:],
        )
        for row in changes(comparison, limit)
    ]
    if rows:
        cuts = {index: _cutter(key) for index, key in enumerate(comparison.keys)}
        yield from layout_table(rows, header(comparison), range(keys + 1), cuts)
    else:
        yield NOTHING if not comparison.unclear else _NOT_SIGNIFICANT
    for note in notes(comparison, limit):
        yield from wrapped(note)
    if limit is not None and (more := len(comparison.differing) - limit) > 0:
        yield f"... and {more:,} more; --top shows them"


STAGE_HEADER = ("", "change", "then")


def stage_rows(stages: Sequence[Stage]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each stage from A's time to B's."""
    yield "A", "", duration(stages[0].from_ns)
    for stage in stages:
        alone = stage.op_count == 1
        name = cut_middle(stage.name or DASH, _KEY_WIDTH) if alone else f"{stage.op_count} others"
        yield name, _signed(duration(stage.change_ns), stage.change_ns), duration(stage.to_ns)
    yield "B", "", duration(stages[-1].to_ns)


def notes(comparison: Comparison, limit: int | None) -> Iterator[str]:
    """Say what caused the listed changes, and how many are not listed: they may be chance."""
    said = tuple(f"other {name}:" for name in comparison.common)
    for entry in comparison.differing[:limit]:
        name = " ".join(cut_middle(part, _KEY_WIDTH) for part in entry.key if part) or DASH
        for cause in () if entry.status == REMOVED else entry.causes:  # for something new, say
            if not cause.startswith(said):
                yield f"{name}: {cause}"
    if unclear := len(comparison.unclear):
        yield f"{unclear:,} changed by over {100 * SAME_BELOW:g} %, but not significantly"


def _cutter(key: str) -> Callable[[str, int], str]:
    return cut_start if key == "line" else cut_middle


def markdown_text(comparison: Comparison, limit: int | None, broken: Sequence[str] = ()) -> str:
    """Write the limits that were broken, the totals, and the largest changes."""
    parts = [f"# {comparison.processor} time compared\n"]
    if broken:
        parts += [*(f"- **failed** {markdown.escape(sentence)}" for sentence in broken), ""]
    parts += [
        f"{markdown.escape(basis(comparison))}\n",
        f"{markdown.escape(certainty(comparison))}\n",
        *(f"{markdown.escape(cause)}\n" for cause in comparison.causes),
        markdown.markdown_table(METRIC_HEADER, list(metrics(comparison))),
    ]
    rows = list(changes(comparison, limit))
    nothing = NOTHING if not comparison.unclear else _NOT_SIGNIFICANT
    listed = markdown.markdown_table(header(comparison), rows) if rows else f"{nothing}\n"
    parts += ["## Largest changes\n", listed]
    parts += [f"{markdown.escape(note)}\n" for note in notes(comparison, limit)]
    return "\n".join(parts)
