"""Numbers, names and tables for people, in a terminal and in Markdown."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from functools import partial
from typing import TYPE_CHECKING

import click

from pyprof import sanitize
from pyprof.process import output_file, stdio
from pyprof.prof.step_rows import PARTS
from pyprof.quantities import DASH, number, significant
from pyprof.render.text.layout.text_width import cells, pad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_END = "\n"
_WIDTH = 100
"""The width of a line, in cells, without a terminal."""
_TEXT_WIDTH = 120
"""Sentences are no wider: longer lines are hard to read."""
_GAP = "  "

_FOLDERS = re.compile(r"^.*[/\\]")


def width() -> int:
    """Return the cells of a line: COLUMNS, else the terminal's, else 100."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns or _WIDTH


def text_width() -> int:
    """Return the cells of a line of sentences."""
    return min(width(), _TEXT_WIDTH)


_MILLISECOND, _MICROSECOND = 1e6, 1e3
_MIN_SHOWN = 0.001
"""Smaller times have no digit to show, and are written as `<0.001`."""


def milliseconds(ns: float | None) -> str:
    """A time in ms with three significant digits, so that a column of them compares."""
    return _format_in(_MILLISECOND, ns)


def _format_in(unit_ns: float, ns: float | None) -> str:
    if ns is None:
        return DASH
    if not ns:
        return "0"
    size = ns / unit_ns
    return significant(size) if abs(size) >= _MIN_SHOWN else f"<{_MIN_SHOWN}"


def common_unit(times_ns: Iterable[float | None]) -> tuple[str, Callable[[float | None], str]]:
    """Return `ms`, or `us` if no time reaches a millisecond, and a function to format a time."""
    longest = max((abs(ns) for ns in times_ns if ns is not None), default=0.0)
    if 0 < longest < _MILLISECOND:
        return "us", partial(_format_in, _MICROSECOND)
    return "ms", milliseconds


def percent(share: float | None) -> str:
    """Format a share of 1 in %."""
    return DASH if share is None else f"{100 * share:.1f}"


def short_line(line: str | None) -> str:
    """Leave the folders out of `folder/file.py:12`."""
    return _FOLDERS.sub("", line) if line else DASH


def place(line: str | None, user_range: str | None) -> str:
    """Return the line of work or, without one, the user's range around it."""
    return short_line(line) if line or not user_range else f"in {user_range}"


def wrapped(text: str, first: str = "", rest: str | None = None) -> list[str]:
    """Break a sentence into lines that people read without scrolling.

    `first` precedes the first line and `rest` the others: by default as many blanks as `first` has
    characters.

    Control characters, as in captured names, become blanks.
    """
    indent = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub(_NO_BREAK, sanitize.single_line(text)),
        max(text_width() - len(indent), _MIN_TEXT),
        break_on_hyphens=False,
    )
    lines = [line.replace(_NO_BREAK, " ") for line in lines or [""]]
    return [f"{indent if index else first}{line}" for index, line in enumerate(lines)]


_NO_BREAK = "\N{NO-BREAK SPACE}"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=%|(?:[mun]?s|[kMGTP]?(?:B|FLOP))\b)")
"""The blank between a number and its unit, where no line ends."""

_LABEL = 10
"""Width of the column of labels."""


def labelled(label: str, *values: str) -> Iterator[str]:
    """Break sentences as `wrapped` does, the first beside a label; nothing without any."""
    for index, value in enumerate(values):
        first, *rest = wrapped(value, " " * _LABEL)
        shown = "" if index else label
        yield f"{heading(shown.ljust(_LABEL - 1))} {first[_LABEL:]}"
        yield from rest


def widths(rows: Sequence[Sequence[str]], header: Sequence[str]) -> list[int]:
    """Return the width of each column, in cells of a terminal."""
    return [max(map(cells, column)) for column in zip(header, *rows, strict=True)]


def wrap_columns(
    rows: Sequence[Sequence[str]], header: Sequence[str], left: Sequence[int]
) -> list[str]:
    """Align cells as `table` does; columns beyond the width continue below, indented."""
    wide = widths(rows, header)
    parts: list[list[int]] = []
    used = room = width()
    for index in range(1, len(wide)):
        if used + len(_GAP) + wide[index] > room:
            used = wide[0] + len(_GAP) * bool(parts)
            parts.append([])
        parts[-1].append(index)
        used += len(_GAP) + wide[index]
    lines: list[str] = []
    for part in parts:
        first = _GAP * bool(lines)
        shown = [[first + row[0], *(row[index] for index in part)] for row in rows]
        to_left = [at for at, index in enumerate([0, *part]) if index in left]
        head = [first + header[0], *(header[index] for index in part)]
        lines += [""] * bool(lines) + table(shown, head, to_left)
    return lines


def table(
    rows: Iterable[Sequence[str]], header: Sequence[str], left: Sequence[int], gap: str = _GAP
) -> list[str]:
    """Align cells under their header: columns in `left` to the left, others to the right."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    wide = widths(lines[1:], header)
    return [
        gap.join(
            pad(cell, width, left=index in left)
            for index, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in lines
    ]


def layout_table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str],
    left: Sequence[int],
    cuts: Mapping[int, Callable[[str, int], str]] | None = None,
) -> Iterator[str]:
    """Align cells as `table` does, in lines as wide as the terminal, with the header marked.

    If a table is too wide, its columns move closer together; then headers take two lines; then the
    texts of `cuts` are cut, each by its rule; then columns continue below. No number is cut.
    """
    cutters, room = cuts or {}, width()
    parts = [name.rpartition(" ") for name in header]
    firsts = [first for first, _, _ in parts]
    stacked = [*([firsts] if any(firsts) else []), [last for *_, last in parts]]
    for heads, gap in (([header], _GAP), ([header], " "), (stacked, " ")):
        wide = [max(map(cells, column)) for column in zip(*heads, *rows, strict=True)]
        over = sum(wide) + len(gap) * (len(wide) - 1) - room
        if over <= 0:
            break
    least = {index: max(_MIN_TEXT, *(cells(head[index]) for head in heads)) for index in cutters}
    sizes = narrowed(wide, least, over)
    if sum(wide) - sum(sizes) < over:
        shortest = [_MIN_TEXT] * len(wide)
        yield from wrap_columns([_cut_cells(row, shortest, cutters) for row in rows], header, left)
        return
    shown = [_cut_cells(row, sizes, cutters) for row in rows]
    lines = table([*heads[1:], *shown], heads[0], left, gap)
    yield from map(heading, lines[: len(heads)])
    yield from lines[len(heads) :]


_MIN_TEXT = 16
"""Minimum width in cells of a text that is cut."""


def narrowed(wide: Sequence[int], least: Mapping[int, int], over: int) -> list[int]:
    """Narrow the columns that have most to spare, by `over` cells in all or as far as they go.

    `least` is the minimum width of the columns whose texts may be cut.
    """
    sizes = [*wide]
    for _ in range(over):
        widest = max(least, key=lambda index: sizes[index] - least[index], default=None)
        if widest is None or sizes[widest] <= least[widest]:
            break
        sizes[widest] -= 1
    return sizes


def _cut_cells(
    row: Sequence[str], sizes: Sequence[int], cutters: Mapping[int, Callable[[str, int], str]]
) -> list[str]:
    return [
        cutters[index](cell, sizes[index]) if index in cutters else cell
        for index, cell in enumerate(row)
    ]


def colours(target: str) -> bool:
    """Whether output to `target` may be coloured: only on stdout, and not if NO_COLOR is set.

    Stdout must be a terminal, or FORCE_COLOR must be set.
    """
    if target != output_file.STDOUT or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        stdio.terminal(sys.stdout) and os.environ.get("TERM") != "dumb"
    )


def heading(text: str) -> str:
    """Mark a line as a heading; `finish` removes the mark from uncoloured output."""
    return click.style(text, bold=True)


def headed(lines: Sequence[str]) -> Iterator[str]:
    """Mark the first line, the header of a table, as a heading."""
    yield heading(lines[0])
    yield from lines[1:]


def separated(sections: Iterable[Iterable[str]]) -> Iterator[str]:
    """Put an empty line between sections; those without lines are left out."""
    shown = filter(None, map(list, sections))
    yield from next(shown, [])
    for lines in shown:
        yield ""
        yield from lines


def finish(lines: Iterable[str], *, coloured: bool) -> bytes:
    """Encode lines, without colours unless they are wanted.

    Characters in captured names that would break lines or control a terminal become blanks.
    """
    text = "".join(f"{sanitize.multiline(line.replace(_END, ' '))}\n" for line in lines)
    return (text if coloured else click.unstyle(text)).encode()


def write(target: str, lines: Iterable[str]) -> None:
    """Write lines to a file or, coloured if it is a terminal, to stdout."""
    with output_file.open_output(target) as out:
        out.write(finish(lines, coloured=colours(target)))


def count(value: float | None) -> str:
    """Format a count with separated thousands; a fraction to three digits."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def part_name(direction: str | None) -> str:
    """Name a part of the step, which records store as `fprop` and so on."""
    return PARTS.get(direction or "", direction or "unknown")


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#!|~$&])")


def escape(text: str) -> str:
    """Escape the special characters of Markdown, and of HTML in it; line ends become blanks."""
    return _SPECIAL.sub(r"\\\1", " ".join(sanitize.single_line(text).split()))


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [header, rule, *([escape(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
