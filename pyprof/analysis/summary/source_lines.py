"""GPU time by source line: what each line launched itself, and what it and its callees launched.

Exact without CUDA_LAUNCH_BLOCKING: the capture ties each kernel to the stack that launched it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis import advice, filtered
from pyprof.analysis.time.steps import chosen_bounds, find_steps
from pyprof.analysis.time.timeline import BLOCKING, timeline
from pyprof.parse.ranges.range_stacks import file_and_line, user_line
from pyprof.prof.processor import GPU, processor_of
from pyprof.records.merging import merge_unique
from pyprof.records.records import combinations, totals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.advice import Advice
    from pyprof.analysis.filtered import Filtered
    from pyprof.arrays import IntArray, Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.prof.where import Condition


@dataclass(frozen=True, slots=True)
class LineTime:
    """One line of a file. A backward kernel counts for the line of its forward call."""

    number: int
    calls: int
    """Op calls that the line and its callees made, forward and backward."""
    total_ns: int
    """GPU time of the line and its callees."""
    own_ns: int
    """GPU time of what no callee in the user's own files launched."""


@dataclass(frozen=True, slots=True)
class FileTime:
    """The timed lines of one file, in their order."""

    path: str
    """As the capture has it."""
    lines: tuple[LineTime, ...]

    @property
    def own_ns(self) -> int:
        """GPU time that the file's lines launched themselves."""
        return sum(line.own_ns for line in self.lines)


@dataclass(frozen=True, slots=True)
class SourceLines:
    """All files, that with the most time of its own first.

    The files' own times and `unknown_ns` add up to `total_ns`, the summed GPU time.
    """

    files: tuple[FileTime, ...]
    unknown_ns: int
    """GPU time of rows whose stack is not known, or holds no line of the user's."""
    total_ns: int
    processor: str = GPU
    """Whose time it is."""

    @property
    def slowest(self) -> list[tuple[str, LineTime]]:
        """The lines that launched work themselves, with their files, the most time first."""
        own = [(file.path, line) for file in self.files for line in file.lines if line.own_ns]
        return sorted(own, key=lambda entry: (-entry[1].own_ns, entry[0], entry[1].number))

    @property
    def only_calling(self) -> list[tuple[str, LineTime]]:
        """The lines that only call others: wrappers, loops, `main`."""
        return [(file.path, line) for file in self.files for line in file.lines if not line.own_ns]


def source_lines(table: Table, rows: Mask | None = None) -> SourceLines:
    """Total all rows, or those chosen, by the lines of their stacks."""
    trace = table.own_or_forward("trace")
    chosen = np.ones(len(trace), bool) if rows is None else rows
    index, size = trace.index[chosen] + 1, len(trace.values) + 1  # 0: none
    ns = totals(index, table.duration_ns[chosen], size)
    number_of_line: dict[tuple[str, int], int] = {}
    of_trace: list[list[int]] = [[] for _ in range(size)]
    times: list[list[int]] = []
    """Of each line: with what it calls, and its own, ns."""
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
    sums_by_line = {
        line: [calls[number], *times[number]] for line, number in number_of_line.items()
    }
    unknown_ns = sum(int(ns[place]) for place, lines in enumerate(of_trace) if not lines)
    return SourceLines(_files(sums_by_line), unknown_ns, int(ns.sum()), processor_of(table.records))


def _calls_by_line(
    trace: IntArray, call: IntArray, of_trace: Sequence[Sequence[int]], count: int
) -> list[int]:
    """Count the calls of each line, one with rows of several stacks once."""
    first, _ = combinations(trace, call)
    lengths = np.array([len(lines) for lines in of_trace])
    begins = np.cumsum(lengths) - lengths
    trace, call = trace[first], call[first]
    times = lengths[trace]
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    line = np.fromiter(chain.from_iterable(of_trace), np.int64)[
        np.repeat(begins[trace], times) + within
    ]
    first, _ = combinations(line, np.repeat(call, times))
    counts: list[int] = np.bincount(line[first], minlength=count).tolist()
    return counts


def merge_line_times(a: SourceLines, b: SourceLines) -> SourceLines:
    """Make the lines of two captures those of both."""
    sums_by_line: dict[tuple[str, int], list[int]] = {}
    for file in (*a.files, *b.files):
        for line in file.lines:
            sums = sums_by_line.setdefault((file.path, line.number), [0, 0, 0])
            for place, value in enumerate((line.calls, line.total_ns, line.own_ns)):
                sums[place] += value
    on = a.processor if a.processor == b.processor else GPU
    return SourceLines(
        _files(sums_by_line), a.unknown_ns + b.unknown_ns, a.total_ns + b.total_ns, on
    )


def user_lines(frames: Sequence[str]) -> list[tuple[str, int]]:
    """Give the frames of the user's own files, outermost first, as file and line number."""
    places = (file_and_line(frame) for frame in frames if user_line((frame,)) is not None)
    return [line for line in places if line is not None]


def _files(sums_by_line: dict[tuple[str, int], list[int]]) -> tuple[FileTime, ...]:
    files: dict[str, list[LineTime]] = {}
    for (path, number), sums in sorted(sums_by_line.items()):
        files.setdefault(path, []).append(LineTime(number, *sums))
    file_times = [FileTime(path, tuple(lines)) for path, lines in files.items()]
    return tuple(sorted(file_times, key=lambda file: (-file.own_ns, file.path)))


# What `pyprof lines` says of a capture, small enough to send; that of several makes one.


@dataclass(frozen=True, slots=True)
class Lines:
    """Source lines, and what could be won at them."""

    times: SourceLines
    advice: list[Advice]
    """All of it."""
    warnings: tuple[str, ...]
    row_count: int
    """Of all rows, which are numbered on behind those of other captures."""
    kept: Filtered | None = None
    """What `--where` left."""

    @property
    def placed(self) -> list[Advice]:
        """The advice that names lines."""
        return [entry for entry in self.advice if any(part.line for part in entry.evidence)]


def summarise_lines(source: Source, chosen: str | None, asked: Sequence[Condition] = ()) -> Lines:
    """Look at a capture, or the steps of it that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter where it names none.
    """
    steps = find_steps(source.table.records, source.capture)
    picked = chosen_bounds(steps, chosen)
    rows, kept = filtered.choose(source, steps.rows(picked), asked)
    # Time between rows is idle only where none were left out.
    timed = None if asked else timeline(source.table.records, source.capture, rows)
    given = advice.advise(source.table, timed, source.capture, rows, None if picked else steps)
    blocking = [BLOCKING] if timed is not None and timed.blocking else []
    return Lines(
        source_lines(source.table, rows),
        advice.without_rows(given),
        (*source.table.source.warnings, *blocking),
        source.table.records.rows,
        kept,
    )


def merge_line_reports(a: Lines, b: Lines) -> Lines:
    """Make what was found of two captures one."""
    return Lines(
        merge_line_times(a.times, b.times),
        advice.merge_advice(a.advice, advice.renumbered(b.advice, a.row_count)),
        merge_unique(a.warnings, b.warnings),
        a.row_count + b.row_count,
        filtered.merge_filtered(a.kept, b.kept),
    )
