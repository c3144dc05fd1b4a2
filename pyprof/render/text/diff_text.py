"""A comparison as text: on the terminal, as CSV and as Markdown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyprof import sanitize
from pyprof.answers.diff_answer import SAME_BELOW, held_text
from pyprof.prof.processor import CPU
from pyprof.quantities import DASH, amount, change, duration, number
from pyprof.render.text import formatting as markdown
from pyprof.render.text.formatting import count, heading, layout_table, percent, wrapped
from pyprof.render.text.layout.text_width import cut_middle, cut_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.answers.diff_answer import Change, Diff, Stage

_LABELS = {
    "time_ns": "{} time, summed",
    "busy_ns": "{} busy",
    "idle_ns": "{} idle",
    "exposed_ns": "exposed communication",
    "step_ns": "median step",
    "kernels_count": "{rows}",
    "flops": "FLOPs, where known",
    "bytes": "bytes needed, where known",
    "dram_bytes": "DRAM traffic, measured",
    "energy_j": "energy while kernels ran",
    "clock_hz": "SM clock, measured",
    "tensor_percent": "Tensor Cores active (%)",
}
NOTHING = f"no op changed by more than {100 * SAME_BELOW:g} %"
"""Shown instead of an empty list of changes."""
METRIC_HEADER = ("", "A", "B", "change", "change (%)", "± (%)", "")
_NOT_SIGNIFICANT = "no significant change"
_NEARLY_ALL = 0.995
"""Steps with a smaller share of the time leave something out, such as a warm-up."""


def basis(diff: Diff) -> str:
    """Say whether the numbers are per step, or totals and why."""
    steps = diff.per_step
    if steps is None:
        return f"totals of both captures ({diff.why_totals})"
    held = steps.a_share, steps.b_share
    part = f"; they hold {held_text(*held)}" if min(held) < _NEARLY_ALL else ""
    return f"per step: A has {steps.a_count:,}, B {steps.b_count:,}{part}"


def certainty(diff: Diff) -> str:
    """Say what intervals rest on, or why there are none."""
    noise = diff.noise
    if noise.samples is None:
        return f"noise is unknown: {noise.why}; changes may be chance"
    few = noise.samples == "steps" and min(noise.a_count, noise.b_count) < noise.enough
    return (
        f"±: {100 * noise.level_share:g} % interval, by the spread over {noise.samples}"
        " (between runs: unknown)"
        + (f"; fewer than {noise.enough} steps tell only large changes from noise" if few else "")
    )


def metrics(diff: Diff) -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric that is known on either side; exposed communication, if any."""
    for name, metric in diff.metrics.items():
        if {metric.a, metric.b} <= ({None, 0} if name == "exposed_ns" else {None}):
            continue
        rows = "ops" if diff.processor == CPU else "kernels and copies"
        label = _LABELS[name].format(diff.processor, rows=rows)
        if metric.change is None and None not in (metric.a, metric.b):
            label = label.replace("where known", "of other rows")
        form = _FORMATS.get(name.rpartition("_")[2], count)
        a, b, delta = map(form, (metric.a, metric.b, metric.change))
        half = doubt = ""
        if metric.low is not None and metric.high is not None:
            width = metric.high - metric.low
            half = percent(width / 2 / metric.a) if metric.a else ""
            doubt = "" if metric.significant or not width else _NOT_SIGNIFICANT
        signed = _with_sign(delta, metric.change)
        yield label, a, b, signed, change(metric.change_share), half, doubt


_FORMATS: Mapping[str, Callable[[float | None], str]] = {
    "ns": duration,
    "percent": number,
    "flops": partial(amount, unit="FLOP"),
    "bytes": partial(amount, unit="B"),
    "j": partial(amount, unit="J"),
    "hz": partial(amount, unit="Hz"),
}


def _with_sign(text: str, value: float | None) -> str:
    return f"+{text}" if value is not None and value > 0 else text


def header(diff: Diff) -> tuple[str, ...]:
    """Name the columns of `changes`."""
    titles = ("", "A", "B", "change", "change (%)", "± (%)", "calls A", "calls B")
    return (*diff.matched_by, *titles)


def changes(diff: Diff, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Yield a row for each op that changed, the largest difference first."""
    for entry in diff.differing[:limit]:
        names = (DASH if part is None else part for part in entry.key.values())
        yield (*names, *change_cells(entry))


def change_cells(entry: Change) -> tuple[str, ...]:
    """Format the cells of one change."""
    return (
        entry.status,
        duration(entry.a_ns),
        duration(entry.b_ns),
        _with_sign(duration(entry.change_ns), entry.change_ns),
        DASH if entry.b_ns is None else change(entry.change_share),
        percent(half_of(entry)),
        *(count(calls) for calls in (entry.a_calls, entry.b_calls)),
    )


def half_of(entry: Change) -> float | None:
    """Return the half-width of the interval as a fraction of A; None if either is unknown."""
    if not entry.a_ns or entry.b_ns is None or entry.half_ns is None:
        return None
    return entry.half_ns / entry.a_ns


_NUMBERS = ("status", "a_ns", "b_ns", "change_ns", "change", "a_calls", "b_calls",
            "a_rows", "b_rows", "interval_ns", "p", "causes")  # fmt: skip


def csv_text(diff: Diff) -> str:
    """Write RFC 4180; `change` is a fraction of A, calls and rows are totals."""
    rows = (
        [
            *entry.key.values(),
            entry.status,
            entry.a_ns,
            entry.b_ns,
            entry.change_ns,
            entry.change_share,
            entry.a_calls,
            entry.b_calls,
            entry.a_rows,
            entry.b_rows,
            entry.half_ns,
            entry.p,
            "; ".join(map(str, map(sanitize.escape_formula, entry.causes))),
        ]
        for entry in diff.changes
    )
    return sanitize.csv_text([[*diff.matched_by, *_NUMBERS], *rows])


_KEY_WIDTH = 32


def diff_lines(diff: Diff, limit: int | None) -> Iterator[str]:
    """Yield the totals, then the largest changes."""
    yield heading(basis(diff))
    yield from wrapped(certainty(diff))
    for cause in diff.causes:
        yield from wrapped(cause)
    yield from layout_table([*metrics(diff)], METRIC_HEADER, (0, 6))
    yield ""
    if diff.waterfall:
        yield heading(f"from A to B, {diff.processor} time")
        yield from layout_table([*stage_rows(diff.waterfall)], STAGE_HEADER, (0,))
        yield ""
    yield heading("largest changes")
    keys = len(diff.matched_by)
    cuts = {
        index: cut_start if key == "line" else cut_middle
        for index, key in enumerate(diff.matched_by)
    }
    rows = [
        [*(cut(row[index], _KEY_WIDTH) for index, cut in cuts.items()), *row[keys:]]
        for row in changes(diff, limit)
    ]
    if rows:
        yield from layout_table(rows, header(diff), range(keys + 1), cuts)
    else:
        yield _why_no_change(diff)
    for note in notes(diff, limit):
        yield from wrapped(note)
    if limit is not None and (more := len(diff.differing) - limit) > 0:
        yield f"... and {more:,} more; --top shows them"


def _why_no_change(diff: Diff) -> str:
    """Say why no change is listed."""
    return _NOT_SIGNIFICANT if diff.unclear_count else NOTHING


STAGE_HEADER = ("", "change", "then")


def stage_rows(stages: Sequence[Stage]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each stage from A's time to B's."""
    yield "A", "", duration(stages[0].from_ns)
    for stage in stages:
        alone = stage.op_count == 1
        name = cut_middle(stage.name or DASH, _KEY_WIDTH) if alone else f"{stage.op_count} others"
        yield name, _with_sign(duration(stage.change_ns), stage.change_ns), duration(stage.to_ns)
    yield "B", "", duration(stages[-1].to_ns)


def notes(diff: Diff, limit: int | None) -> Iterator[str]:
    """Say what caused the listed changes, and how many are not listed: they may be chance."""
    said = tuple(f"different {name}:" for name in diff.common)
    for entry in diff.differing[:limit]:
        name = " ".join(cut_middle(part, _KEY_WIDTH) for part in entry.key.values() if part) or DASH
        for cause in () if entry.status == "gone" else entry.causes:  # for something new, say
            if not cause.startswith(said):
                yield f"{name}: {cause}"
    if unclear := diff.unclear_count:
        yield f"{unclear:,} changed by over {100 * SAME_BELOW:g} %, but not significantly"


def markdown_text(diff: Diff, limit: int | None) -> str:
    """Write the limits that were broken, the totals, and the largest changes."""
    parts = [f"# {diff.processor} time compared\n"]
    if diff.failed:
        parts += [*(f"- **failed** {markdown.escape(sentence)}" for sentence in diff.failed), ""]
    parts += [
        f"{markdown.escape(basis(diff))}\n",
        f"{markdown.escape(certainty(diff))}\n",
        *(f"{markdown.escape(cause)}\n" for cause in diff.causes),
        markdown.markdown_table(METRIC_HEADER, list(metrics(diff))),
    ]
    rows = list(changes(diff, limit))
    listed = markdown.markdown_table(header(diff), rows) if rows else f"{_why_no_change(diff)}\n"
    parts += ["## Largest changes\n", listed]
    parts += [f"{markdown.escape(note)}\n" for note in notes(diff, limit)]
    return "\n".join(parts)
