"""The summary's first screen: verdict, what to do, where time goes, time by cause, the capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyprof import quantities
from pyprof.render.text import counters_text, formatting, summary_text
from pyprof.render.text.formatting import UNKNOWN, milliseconds, number, part_name, percent
from pyprof.render.text.layout.text_width import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.answers.parts import Finding, Suggestion
    from pyprof.answers.summary_answer import OpTime, Summary

_MAX_GAINS = 5
_LEAST_GAIN = 0.01
"""Gains below this share of a step are left to -v."""
_TEXT_WIDTH = 120
"""Sentences are no wider: longer lines are hard to read."""


def first_screen(
    answer: Summary, by: str, top: int, depth: int | None, width: int, *, full: bool = False
) -> Iterator[str]:
    """The sections but the last in lines of `width`, each with an empty line behind it.

    The table of where time goes is by op, layer, line or host.
    """
    if answer.chosen is not None:
        yield from summary_text.chosen_rows(answer.chosen, answer.processor)
        if not answer.chosen.row_count:
            return
        yield ""
    yield from verdict(answer, width, full=full)
    yield from what_to_do(answer, width, full=full)
    yield from _where(answer, by, top, depth, width)
    if answer.devices is not None:
        yield from summary_text.times(answer.devices, answer.notes)
        yield ""
    yield from summary_text.serving(answer)
    yield from counters_text.section(answer, top)


def about(answer: Summary) -> Iterator[str]:
    """The GPU, its peaks, how much is modelled, steps, MFU: the end of the first screen."""
    if answer.chosen is None or answer.chosen.row_count:
        yield from summary_text.head(answer)


def verdict(answer: Summary, width: int, *, full: bool = False) -> Iterator[str]:
    """What bounds the work, and what to change first; in `full` with the rows that prove it."""
    wide = min(width, _TEXT_WIDTH)
    for place, each in enumerate(answer.verdict):
        lines = formatting.wrapped(each.text, rest="  ", width=wide)
        yield from map(formatting.heading, lines) if not place else lines
        for finding in each.evidence if full else ():
            yield from formatting.wrapped(evidence_text(finding), "  - ", width=wide)
    if answer.verdict:
        yield ""


def evidence_text(finding: Finding) -> str:
    """Rows alike, with the numbers of some: `linear at net.py:3: 1.26 ms in 4; rows 7, 9`."""
    numbers = ", ".join(map(str, finding.row_ids[:_MAX_FINDINGS]))
    rows = f"; rows {numbers}" if numbers else ""
    return f"{summary_text.finding_text(finding)}{rows}"


def what_to_do(answer: Summary, width: int, *, full: bool = False) -> Iterator[str]:
    """Gains, the largest first, with the place to look at; without `full` those worth a look."""
    shown = [entry for entry in answer.advice if full or _is_worth(entry)]
    if answer.steps.averaged_count is None:  # what happens once counts as much
        shown.sort(key=lambda entry: -(entry.gain_ns or 0))
    shown = shown if full else shown[:_MAX_GAINS]
    if not shown:
        yield from _no_gain(answer, width)
        return
    per_step = " per step" if any(entry.gain_step_ns is not None for entry in shown) else ""
    yield formatting.heading(f"What to do (gain{per_step} at most; gains overlap)")
    gains = [_gain(entry) for entry in shown]
    size = max(cells(time) for time, _ in gains)
    wide = min(width, _TEXT_WIDTH)
    for (time, share), entry in zip(gains, shown, strict=True):
        start = f"{time:>{size}} {share:>6}  "
        under = " " * len(start)
        yield from formatting.wrapped(entry.title, start, width=wide)
        yield from formatting.wrapped(entry.action, under, width=wide)
        for finding in entry.evidence[: _MAX_FINDINGS if full else 1]:
            more = len(entry.evidence) - 1
            others = f"; and {more} more" if more and not full else ""
            text = f"{summary_text.finding_text(finding)}{others}"
            yield from formatting.wrapped(text, f"{under}- ", width=wide)
    if rest := len(answer.advice) - len(shown):
        yield f"... and {rest} more (-v)"
    yield ""


_MAX_FINDINGS = 3


def _is_worth(entry: Suggestion) -> bool:
    return entry.gain_share is None or entry.gain_share >= _LEAST_GAIN


def _gain(entry: Suggestion) -> tuple[str, str]:
    ns = entry.gain_ns if entry.gain_step_ns is None else entry.gain_step_ns
    share = UNKNOWN if entry.gain_share is None else quantities.percent(entry.gain_share)
    return ("unknown" if ns is None else formatting.duration(ns)), share


def _no_gain(answer: Summary, width: int) -> Iterator[str]:
    """That nothing stands out, and in what."""
    below = f"; {len(answer.advice)} below 1 % (-v)" if answer.advice else ""
    looked_at = ", ".join(answer.advice_looked_at)
    text = f"What to do: nothing stands out in {looked_at}{below}." if looked_at else (
        "What to do: nothing could be looked at."
    )  # fmt: skip
    yield from formatting.wrapped(text, rest="  ", width=min(width, _TEXT_WIDTH))
    yield ""


def _where(answer: Summary, by: str, top: int, depth: int | None, width: int) -> Iterator[str]:
    if by == "layer":
        yield from summary_text.layers(answer, depth)
    elif by == "line":
        yield from summary_text.line_table(answer, top)
    elif by == "host":
        yield from summary_text.host_table(answer, top)
    else:
        yield from ops_and_lines(answer, top, width)
    yield ""


class _Column(NamedTuple):
    """A column of the table of ops and lines."""

    title: str
    cell: Callable[[OpTime], str]
    rank: int
    """Those of the highest rank are left out first if there is no room."""
    cut: Callable[[str, int], str] | None = None
    """Texts of the column may be cut, so."""
    left: bool = False


def _columns(unit: str) -> Sequence[_Column]:
    return (
        _Column("Op", lambda op: op.op or op.kernel, 0, formatting.cut_in_middle, left=True),
        _Column("Direction", lambda op: part_name(op.dir) if op.dir else UNKNOWN, 3, left=True),
        _Column("Calls", lambda op: str(op.calls), 5),
        _Column(unit, lambda op: milliseconds(op.time_ns if op.step_ns is None else op.step_ns), 0),
        _Column("%", lambda op: percent(op.share), 0),
        _Column("TFLOP/s", lambda op: number(op.flops_per_s and op.flops_per_s / 1e12), 7),
        _Column("GB/s", lambda op: number(op.bytes_per_s and op.bytes_per_s / 1e9), 8),
        _Column("Eff(%)", lambda op: percent(op.efficiency), 2),
        _Column("Bound", lambda op: op.bound or UNKNOWN, 4, left=True),
        _Column("TC", lambda op: op.tc or UNKNOWN, 6, left=True),
        _Column("Line", _place, 1, formatting.cut_left, left=True),
    )


def _place(op: OpTime) -> str:
    if op.line:
        return formatting.short_line(op.line)
    return f"in {op.range}" if op.range else UNKNOWN


_LEAST_TEXT = 24
"""Characters that a text keeps, where it has as many."""


def ops_and_lines(answer: Summary, top: int, width: int) -> Iterator[str]:
    """The ops that take most time, with their lines, or ranges of the user's; as wide as fits."""
    ops = answer.ops[:top]
    unit = "ms/step" if answer.steps.averaged_count else "ms"
    columns = [(each, [each.cell(op) for op in ops]) for each in _columns(unit)]
    # of what nothing is known, nothing is shown
    columns = [pair for pair in columns if not pair[0].rank or {*pair[1]} - {UNKNOWN}]
    while sum(map(_least, columns)) + 2 * len(columns) - 2 > width:
        worst = max(each.rank for each, _ in columns)
        if not worst:
            break
        columns = [pair for pair in columns if pair[0].rank != worst]
    shown = [*_cut(columns, width)]
    rows = [*zip(*(texts for _, texts in shown), strict=True)]
    left = [place for place, (each, _) in enumerate(shown) if each.left]
    lines = formatting.table(rows, [each.title for each, _ in shown], left)
    yield formatting.heading(lines[0])
    yield from lines[1:]
    for note in summary_text.below_ops(answer, top):
        yield from formatting.wrapped(note, width=width)


_Shown = tuple[_Column, "list[str]"]


def _natural(pair: _Shown) -> int:
    return max(map(cells, (pair[0].title, *pair[1])))


def _least(pair: _Shown) -> int:
    return min(_natural(pair), _LEAST_TEXT) if pair[0].cut else _natural(pair)


def _cut(columns: Sequence[_Shown], width: int) -> Iterator[_Shown]:
    """Cut texts as far as the table is too wide, the longest first; no number is cut."""
    sizes = [_natural(pair) for pair in columns]
    over = sum(sizes) + 2 * len(sizes) - 2 - width
    while over > 0:
        can = [at for at, pair in enumerate(columns) if pair[0].cut and sizes[at] > _least(pair)]
        if not can:
            break
        sizes[max(can, key=sizes.__getitem__)] -= 1
        over -= 1
    for (column, texts), size in zip(columns, sizes, strict=True):
        cut = column.cut
        yield column, texts if cut is None else [cut(text, size) for text in texts]
