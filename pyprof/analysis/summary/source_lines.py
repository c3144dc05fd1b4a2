"""GPU time by source line: what each line launched itself, and what it and its callees launched.

Exact without CUDA_LAUNCH_BLOCKING: the capture ties each kernel to the stack that launched it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import SummarySums, overview, sum_up
from pyprof.analysis.time.timeline import BLOCKING
from pyprof.answers.lines_answer import Lines, LineTime
from pyprof.parse.ranges.range_stacks import file_and_line, user_line
from pyprof.prof.processor import processor_of, processor_of_both
from pyprof.records.merging import merged_by
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import IntArray, Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.prof.where import Condition


@dataclass(frozen=True, slots=True)
class LineSums:
    """Sums over rows by the lines of their stacks; those of several captures add up."""

    lines: pa.Table
    """By `line` (`file:number`): op calls and GPU time with its callees (`calls`, `time_ns`), and
    the time of what no callee in the user's own files launched (`own_ns`). A backward kernel counts
    for the line of its forward call."""
    unknown_ns: int
    """GPU time of rows whose stack is not known, or holds no line of the user's."""
    total_ns: int
    """The sum of `unknown_ns` and the lines' own times."""
    processor: str = merged_by(processor_of_both)
    """The kind of processor whose time it is."""


def source_lines(table: Table, rows: Mask | None = None) -> LineSums:
    """Total all rows, or those chosen, by the lines of their stacks."""
    trace = table.own_or_forward("trace")
    chosen = np.ones(len(trace), bool) if rows is None else rows
    index, size = trace.index[chosen] + 1, len(trace.values) + 1  # 0: none
    ns = totals(index, table.duration_ns[chosen], size)
    number_of_line: dict[tuple[str, int], int] = {}
    of_trace: list[list[int]] = [[] for _ in range(size)]
    times: list[list[int]] = []
    """Time of each line with its callees, and its own, ns."""
    for place in np.unique(index[index > 0]).tolist():
        lines = user_lines(trace.values[place - 1])
        for line in dict.fromkeys(lines):
            number = number_of_line.setdefault(line, len(number_of_line))
            if number == len(times):
                times.append([0, 0])
            of_trace[place].append(number)
            times[number][0] += int(ns[place])
            times[number][1] += int(ns[place]) if line == lines[-1] else 0
    calls = _calls_by_line(index, table.named_call[chosen], of_trace, len(times))
    columns = {
        "line": pa.array([f"{path}:{number}" for path, number in number_of_line], pa.string()),
        "calls": pa.array(calls, pa.int64()),
        "time_ns": pa.array([time_ns for time_ns, _ in times], pa.int64()),
        "own_ns": pa.array([own_ns for _, own_ns in times], pa.int64()),
    }
    unknown_ns = sum(int(ns[place]) for place, lines in enumerate(of_trace) if not lines)
    on = processor_of(table.records)
    return LineSums(pa.table(columns), unknown_ns, int(ns.sum()), on)


def _calls_by_line(
    trace: IntArray, call: IntArray, of_trace: Sequence[Sequence[int]], count: int
) -> list[int]:
    """Count the calls of each line; a call with rows of several stacks counts once."""
    first, _ = combinations(trace, call)
    lines = pa.array(of_trace, pa.list_(pa.int64())).take(pa.array(trace[first]))
    line, call = lines.flatten().to_numpy(), call[first][pc.list_parent_indices(lines)]
    first, _ = combinations(line, call)
    counts: list[int] = np.bincount(line[first], minlength=count).tolist()
    return counts


def user_lines(frames: Sequence[str]) -> list[tuple[str, int]]:
    """The frames in the user's own files, outermost first, as file and line number."""
    places = (file_and_line(frame) for frame in frames if user_line((frame,)) is not None)
    return [line for line in places if line is not None]


def line_times(sums: LineSums) -> tuple[LineTime, ...]:
    """Every line, the most time of its own first."""
    total_ns = sums.total_ns or 1
    lines = [
        LineTime(
            line=row["line"],
            file=file,
            number=int(number),
            calls=row["calls"],
            time_ns=row["time_ns"],
            own_ns=row["own_ns"],
            share=row["own_ns"] / total_ns,
            source=None,
        )
        for row in sums.lines.to_pylist()
        for file, _, number in [row["line"].rpartition(":")]
    ]
    return tuple(sorted(lines, key=lambda line: (-line.own_ns, -line.time_ns, line.line)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesSums:
    """What the answer is made from, small enough to send; several captures make one."""

    lines: LineSums
    summary: SummarySums
    """What the advice, and what else is said of the capture, is made from."""


def summarise_lines(
    source: Source, chosen: str | None, asked: Sequence[Condition] = ()
) -> LinesSums:
    """Look at a capture, or the steps of it that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter if `chosen` names no step.
    """
    view = overview(source, chosen, asked)
    return LinesSums(lines=source_lines(source.table, view.rows), summary=sum_up(source, view))


def lines_answer(sums: LinesSums) -> Lines:
    """Make the answer, with the advice that names lines."""
    answer, devices = summary(sums.summary), sums.summary.devices
    blocking = [BLOCKING] if devices is not None and devices.blocking else []
    return Lines(
        chosen=answer.chosen,
        processor=sums.lines.processor,
        total_ns=sums.lines.total_ns,
        unknown_ns=sums.lines.unknown_ns,
        lines=line_times(sums.lines),
        advice=tuple(each for each in answer.advice if any(part.line for part in each.evidence)),
        warnings=(*answer.warnings, *blocking),
    )
