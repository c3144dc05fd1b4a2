"""The user's source lines, sorted by their own time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.inputs.user_source import LineNames, Sources
from pyprof.quantities import duration
from pyprof.render.page.tables import (
    MAX_LETTERS,
    PATH,
    amount,
    of_numbers,
    of_texts,
    share,
    sortable,
    text,
    time,
)
from pyprof.render.text.formatting import percent, short_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.answers.lines_answer import Lines, LineTime
    from pyprof.render.page.parts import Page
    from pyprof.render.page.tables import Column, Sortable

TITLE, ORDER = "Lines", 30
_MAX_ROWS = 500
_EXCERPTS, _CONTEXT_LINES = 5, 3


def section(page: Page) -> Mapping[str, Any] | None:
    """The lines that launched work themselves, and separately those that only call."""
    answer = page.report.lines
    if not answer.lines:
        return None
    sources = Sources(page.sources) if page.sources is not None else None
    code = LineNames(sources).text if sources is not None else None
    lines = [line for file in answer.files for line in file.lines]
    slowest = sorted((line for line in lines if line.own_ns), key=lambda line: -line.own_ns)
    callers = sorted((line for line in lines if not line.own_ns), key=lambda line: -line.time_ns)
    return {
        "lines": _table(slowest, answer, page, code),
        "callers": _table(callers, answer, page, code),
        "excerpts": _excerpts(slowest[:_EXCERPTS], sources) if sources is not None else [],
        "with_source": sources is not None,
        "unknown": duration(answer.unknown_ns) if answer.unknown_ns else None,
        "unknown_percent": percent(answer.unknown_ns / max(answer.total_ns, 1)),
    }


def _table(
    lines: Sequence[LineTime], answer: Lines, page: Page, code: Callable[[str, int], str] | None
) -> Sortable:
    total_ns = max(answer.total_ns, 1)
    columns: list[Column[LineTime]] = [
        (of_texts("line"), lambda at: text(f"{short_line(at.file)}:{at.number}", css_class=PATH)),
        (of_numbers("own time", "time", "ns"), lambda at: time(at.own_ns)),
        (of_numbers("share", "share", "%"), lambda at: share(at.own_ns / total_ns)),
        (of_numbers("with callees", "total", "ns"), lambda at: time(at.time_ns)),
        (of_numbers("op calls", "calls"), lambda at: amount(at.calls)),
    ]
    if code is not None:
        columns.insert(1, (of_texts("source"), lambda at: text(code(at.file, at.number))))
    return sortable(
        lines, columns, _MAX_ROWS,
        time_ns=lambda at: at.own_ns, key=lambda at: page.selectable.key(stack=at.line),
    )  # fmt: skip


class _Excerpt(NamedTuple):
    file: str
    lines: list[tuple[int, str, str]]
    """Number, own time ("" of a line that is not among the slowest) and text."""


def _excerpts(slowest: Sequence[LineTime], sources: Sources) -> list[_Excerpt]:
    """The surroundings of the slowest lines whose source is found; adjacent ones are joined."""
    times = {(line.file, line.number): duration(line.own_ns) for line in slowest}
    shown: list[_Excerpt] = []
    for path in dict.fromkeys(line.file for line in slowest):
        code = sources.lines(path)
        around = {
            number
            for line in slowest
            if line.file == path and 0 < line.number <= len(code)
            for number in range(line.number - _CONTEXT_LINES, line.number + _CONTEXT_LINES + 1)
            if 0 < number <= len(code)
        }
        for number in sorted(around):
            if number - 1 not in around:
                shown.append(_Excerpt(short_line(path), []))
            text_shown = code[number - 1][:MAX_LETTERS]
            shown[-1].lines.append((number, times.get((path, number), ""), text_shown))
    return shown
