"""The slowest lines, then the user's source with GPU time beside each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.inputs.user_source import LineNames, around, functions_in, read
from pyprof.quantities import counted
from pyprof.render.text import formatting as text
from pyprof.render.text.formatting import milliseconds, percent
from pyprof.render.text.layout.text_width import cut_end, cut_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.answers.lines_answer import FileTime, Lines
    from pyprof.inputs.user_source import Sources

_LONGEST_LINE = 50
"""Cells of a line's name beside its source."""


def slowest_lines(answer: Lines, sources: Sources | None, limit: int) -> Iterator[str]:
    """Rank lines by the time of what they launched themselves; those that only call are counted."""
    total_ns, slowest = answer.total_ns or 1, answer.slowest
    if slowest:
        read_line = LineNames(sources).text
        rows = [
            [
                milliseconds(line.own_ns), percent(line.own_ns / total_ns),
                milliseconds(line.time_ns), str(line.calls), line.line,
                read_line(line.file, line.number),
            ]
            for line in slowest[:limit]
        ]  # fmt: skip
        source = "Source" if any(row[-1] for row in rows) else ""
        header = ["Own ms", "%", f"{answer.processor} ms", "Calls", "Slowest lines", source]
        yield from text.headed(text.table(_fit(rows, header), header, (4, 5)))
    if rest := slowest[limit:]:
        share = percent(sum(line.own_ns for line in rest) / total_ns)
        time = f"{share} % of {answer.processor} time"
        yield f"... and {len(rest)} more, {time} (--top {len(slowest)})"
    if answer.unknown_ns or not answer.lines:
        unknown = (
            f"{milliseconds(answer.unknown_ns)} ms, {percent(answer.unknown_ns / total_ns)} %"
            f" of {answer.processor} time, is tied to no line of yours"
        )
        if not answer.lines:
            unknown += ": no lines were recorded; pyprof.init() in the script records them"
        yield from text.wrapped(unknown)
    if calling := [line for line in answer.lines if not line.own_ns]:
        yield from text.wrapped(
            f"{counted(len(calling), 'line')} only call{'s' * (len(calling) == 1)}"
            " others of yours (-v lists them)"
        )
    files = dict.fromkeys([line.file for line in slowest])
    if files and sources is None:
        yield "(files include source only if --source names its folder)"
    elif absent := [path for path in files if sources is not None and sources.find(path) is None]:
        count = f"{len(absent)} of {len(files)} files"
        yield f"(source of {count} not found; name its folder with --source)"


def _fit(rows: Sequence[Sequence[str]], header: Sequence[str]) -> list[list[str]]:
    """Cut names of lines at their beginning, and source at its end, to fit."""
    wide = text.widths(rows, header)
    room = text.width() - sum(wide[:4]) - 2 * (len(wide) - 1)
    name = max(min(wide[4], _LONGEST_LINE), room - wide[5])
    return [
        [*row[:4], cut_start(row[4], name), cut_end(row[5], max(room - name, 0))] for row in rows
    ]


def annotated_source(answer: Lines, sources: Sources | None, *, full: bool) -> Iterator[list[str]]:
    """Show every file with the functions that hold timed lines; without source, the lines alone.

    Without `full`, source is cut to fit, and what only calls others is left out, as is a file
    without source: the ranking has all that is known about it.
    """
    total_ns = answer.total_ns or 1
    for file in answer.files:
        path = sources.find(file.path) if sources is not None else None
        source = read(path) if path is not None else None
        if not full and (source is None or not file.own_ns):
            continue
        share = percent(file.own_ns / total_ns)
        time = f"{milliseconds(file.own_ns)} ms, {share} % of {answer.processor} time"
        shown = [text.heading(f"{cut_start(file.path, text.width() - len(time) - 2)}: {time}")]
        if source is not None and file.lines[-1].number > len(source):
            shown.append(f"({path} is shorter than when it was captured; another version?)")
        header = ("Line", "Calls", f"{answer.processor} ms", "%", "Own ms", "Source")
        rows = [*_file(file, source or [], total_ns, full=full)]
        if not full:
            room = text.width() - sum(text.widths(rows, header)[:-1]) - 2 * (len(header) - 1)
            rows = [[*row[:-1], cut_end(row[-1], room)] for row in rows]
        yield [*shown, *text.headed(text.table(rows, header, (len(header) - 1,)))]


def _file(file: FileTime, source: Sequence[str], total: int, *, full: bool) -> Iterator[list[str]]:
    """The cells of each line to show; `...` for lines that are left out."""
    timed = {line.number: line for line in file.lines}
    asked = [line.number for line in file.lines if full or line.own_ns]
    functions, shown = functions_in(source), {*asked}
    for number in asked:
        if function := around(functions, number):
            shown.update(range(function.first, function.last + 1))
    before = None
    for number in sorted(shown):
        if source and before is not None and number > before + 1:
            yield [*[""] * 5, "..."]
        before = number
        code = source[number - 1] if number <= len(source) else ""
        line = timed.get(number)
        times = (
            [str(line.calls), milliseconds(line.time_ns), percent(line.time_ns / total),
             milliseconds(line.own_ns)]
            if line
            else [""] * 4
        )  # fmt: skip
        yield [str(number), *times, code]
