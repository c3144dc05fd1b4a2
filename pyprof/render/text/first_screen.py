"""The summary's first screen: verdict, what to do, where time goes, time by cause, the capture."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pyprof.answers.gains import gain_of, worth_a_look
from pyprof.quantities import DASH, number
from pyprof.render.idle_causes import CAUSES
from pyprof.render.text import counters_text, formatting, memory_brief, summary_text
from pyprof.render.text.formatting import part_name, percent, place
from pyprof.render.text.layout.text_width import cells, cut_middle, cut_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.answers.parts import Finding, PredictedGain, Suggestion
    from pyprof.answers.summary_answer import OpTime, Summary

_MAX_GAINS = 5


def first_screen(
    answer: Summary, by: str, top: int, depth: int | None, *, full: bool = False
) -> Iterator[str]:
    """The summary as wide as the terminal; the capture and what it is measured against come last.

    `by` is what the table of where time goes is by: op, layer, line or host.
    """
    chosen = summary_text.chosen_rows(answer.chosen, answer.processor)
    is_part = answer.chosen is not None or answer.steps.are_chosen
    memory = memory_brief.section(answer.memory, is_part=is_part)
    if answer.chosen is not None and not answer.chosen.row_count:
        return formatting.separated([chosen, memory])
    tables = {
        "layer": partial(summary_text.layers, answer, depth),
        "line": partial(summary_text.line_table, answer, top),
        "host": partial(summary_text.host_table, answer, top),
        "op": partial(ops_and_lines, answer, top),
    }
    return formatting.separated(
        [
            chosen,
            verdict(answer, full=full),
            what_to_do(answer, full=full),
            tables[by](),
            summary_text.times(answer.devices, answer.notes),
            summary_text.serving(answer),
            counters_text.section(answer, top),
            memory,
            summary_text.head(answer),
        ]
    )


def verdict(answer: Summary, *, full: bool = False) -> Iterator[str]:
    """What bounds the work, and what to change first; in `full` with the rows that prove it."""
    for index, each in enumerate(answer.verdict):
        lines = formatting.wrapped(each.text, rest="  ")
        yield from map(formatting.heading, lines) if not index else lines
        for finding in each.evidence if full else ():
            yield from formatting.wrapped(evidence_text(finding), "  - ")


def evidence_text(finding: Finding) -> str:
    """Equal rows, with the numbers of some: `linear at net.py:3: 1.26 ms in 4; rows 7, 9`."""
    numbers = ", ".join(map(str, finding.row_ids[:_MAX_FINDINGS]))
    rows = f"; rows {numbers}" if numbers else ""
    return f"{summary_text.finding_text(finding)}{rows}"


def what_to_do(answer: Summary, *, full: bool = False) -> Iterator[str]:
    """List gains, or say where none was found."""
    yield from [*listed_gains(answer.advice, full=full)] or _no_gain(answer)


def listed_gains(advice: Sequence[Suggestion], *, full: bool = False) -> Iterator[str]:
    """Gains in their order, with the place to look at; without `full` those worth a look."""
    shown = advice if full else worth_a_look(advice)[:_MAX_GAINS]
    if not shown:
        return
    gains = [gain_of(entry) for entry in shown]
    per_step = " per step, evidence in total" if any(gain.per_step for gain in gains) else ""
    yield formatting.heading(f"What to do (gain{per_step}; gains overlap)")
    gains = [
        gain._replace(time=_narrow_interval(gain.time), share=_narrow_interval(gain.share))
        for gain in gains
    ]
    times, shares = (
        max(map(cells, texts))
        for texts in ([gain.time for gain in gains], [gain.share for gain in gains])
    )
    for gain, entry in zip(gains, shown, strict=True):
        start = f"{gain.time:>{times}}  {gain.share or DASH:>{shares}}  "
        under = " " * len(start)
        yield from formatting.wrapped(entry.title, start)
        yield from formatting.wrapped(entry.action, under)
        if entry.predicted is not None:
            yield from formatting.wrapped(_prediction(entry.predicted, full=full), under)
        for finding in entry.evidence[: _MAX_FINDINGS if full else 1]:
            more = len(entry.evidence) - 1
            others = f"; and {more} more" if more and not full else ""
            text = f"{summary_text.finding_text(finding)}{others}"
            yield from formatting.wrapped(text, f"{under}- ")
    if rest := len(advice) - len(shown):
        yield f"... and {rest} more (-v)"


_MAX_FINDINGS = 3


def _narrow_interval(interval: str) -> str:
    return interval if interval.startswith("up to") else interval.replace(" to ", "-")


def _prediction(predicted: PredictedGain, *, full: bool) -> str:
    """What an interval rests on; in `full` with the change as code."""
    if full:
        return f"predicted, of kernel time: {predicted.code}; tried on {predicted.validation}"
    on, error, rest = predicted.validation.partition(" error ")
    return f"predicted, of kernel time; tried on {on}{error}{rest.partition(',')[0]}"


def _no_gain(answer: Summary) -> Iterator[str]:
    """Say that nothing stands out in what was looked at."""
    below = f"; {len(answer.advice)} below 1 % (-v)" if answer.advice else ""
    bound = next((each.subject for each in answer.verdict if each.about == "bound"), None)
    idle = bound in CAUSES
    subjects = [each for each in answer.advice_looked_at if not (idle and each == "idle time")]
    unexplained = f"nothing is known to shorten this idle time ({bound}); " if idle else ""
    text = f"What to do: {unexplained}nothing stands out in {', '.join(subjects)}{below}."
    if not subjects:
        text = "What to do: nothing could be looked at."
    yield from formatting.wrapped(text, rest="  ")


class _Column(NamedTuple):
    """A column of the table of ops and lines."""

    title: str
    cell: Callable[[OpTime], str]
    rank: int
    """Columns of the highest rank are left out first if there is no room."""
    cut: Callable[[str, int], str] | None = None
    """How texts of the column are cut; None if they are not."""
    left: bool = False


def _columns(answer: Summary, ops: Sequence[OpTime]) -> Sequence[_Column]:
    unit, format_time = summary_text.time_column(answer, [(op.time_ns, op.step_ns) for op in ops])
    one_way = {op.dir for op in ops} <= {"fprop", "copy", None}
    return (
        _Column("Op", partial(_name, one_way=one_way), 0, cut_middle, left=True),
        _Column(
            "Direction",
            lambda op: part_name(op.dir) if op.dir and not one_way else DASH,
            3,
            left=True,
        ),
        _Column("Calls", lambda op: str(op.calls), 5),
        _Column(unit, lambda op: format_time(op.time_ns, op.step_ns), 0),
        _Column("%", lambda op: percent(op.share), 0),
        _Column("TFLOP/s", lambda op: number(op.flops_per_s and op.flops_per_s / 1e12), 7),
        _Column("GB/s", lambda op: number(op.bytes_per_s and op.bytes_per_s / 1e9), 8),
        _Column("Eff(%)", lambda op: percent(op.efficiency), 2),
        _Column("Bound", lambda op: op.bound or DASH, 4, left=True),
        _Column("TC", lambda op: op.tc or DASH, 6, left=True),
        _Column("Line", lambda op: place(op.line, op.range), 1, cut_start, left=True),
    )


_VERSION = re.compile(r"\bcub::CUB_[\d_]+_NS::")
"""CUB's version and GPUs, the same in all names of a build."""


def _name(op: OpTime, *, one_way: bool) -> str:
    """Name an op, or a kernel without one; mark a copy if all other ops are forward."""
    if op.op is None:
        return _VERSION.sub("cub::", op.kernel)
    return f"{op.op} (copy)" if one_way and op.dir == "copy" else op.op


_MIN_TEXT = 24
"""Minimum width in cells of a text that is cut."""
_WHOLE_TEXT, _SPARE = 40, 5
"""The same while there are columns of at least rank `_SPARE`, which matter less."""


def ops_and_lines(answer: Summary, top: int) -> Iterator[str]:
    """The ops that take most time, with their lines or the user's ranges; as wide as fits."""
    ops, width = answer.ops[:top], formatting.width()
    columns = [(each, [each.cell(op) for op in ops]) for each in _columns(answer, ops)]
    # an empty column is not shown
    columns = [pair for pair in columns if not pair[0].rank or {*pair[1]} - {DASH}]
    while worst := max(each.rank for each, _ in columns):
        least = _WHOLE_TEXT if worst >= _SPARE else _MIN_TEXT
        if sum(_min_width(pair, least) for pair in columns) + 2 * len(columns) - 2 <= width:
            break
        columns = [pair for pair in columns if pair[0].rank != worst]
    # texts are cut until the table fits, if possible, the longest first; no number is
    wide = [_natural_width(pair) for pair in columns]
    narrowest = {index: _min_width(pair) for index, pair in enumerate(columns) if pair[0].cut}
    sizes = formatting.narrowed(wide, narrowest, sum(wide) + 2 * len(wide) - 2 - width)
    shown = [
        [each.cut(text, size) for text in texts] if each.cut else texts
        for (each, texts), size in zip(columns, sizes, strict=True)
    ]
    left = [index for index, (each, _) in enumerate(columns) if each.left]
    titles = [each.title for each, _ in columns]
    yield from formatting.headed(formatting.table(zip(*shown, strict=True), titles, left))
    for note in summary_text.below_ops(answer, top):
        yield from formatting.wrapped(note)


_Shown = tuple[_Column, "list[str]"]


def _natural_width(pair: _Shown) -> int:
    return max(map(cells, (pair[0].title, *pair[1])))


def _min_width(pair: _Shown, text: int = _MIN_TEXT) -> int:
    return min(_natural_width(pair), text) if pair[0].cut else _natural_width(pair)
