"""`pyprof lines --json`: GPU time by source line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.answers import answer
from pyprof.answers.parts import ChosenRows, Suggestion, chosen_rows, suggestions
from pyprof.render.source import read

if TYPE_CHECKING:
    from pyprof.analysis.summary.source_lines import FileTime
    from pyprof.analysis.summary.source_lines import Lines as TimedLines
    from pyprof.render.source import Sources


@dataclass(frozen=True, slots=True)
class LineTime:
    """A source line."""

    line: str
    """`file:number`, as in the column `line` of prof."""
    file: str
    """As the capture has it."""
    number: int
    """From 1."""
    calls: int
    """Op calls that the line and what it calls made, forward and backward."""
    time_ns: int
    """GPU time of the line and what it calls."""
    own_ns: int
    """GPU time without calls into other lines of the user's."""
    share: float
    """`own_ns` by the summed GPU time; with `unknown_ns`, these add up to 1."""
    source: str | None
    """The line's text; null without --source, or where no file there matches."""


@answer("lines")
@dataclass(frozen=True, slots=True)
class Lines:
    """Source lines with their GPU time."""

    chosen: ChosenRows | None
    """The rows that --where chose, which all figures are of; null without --where."""
    processor: str
    """Whose time it is: GPU, or CPU in a capture without one."""
    total_ns: int
    """Summed time of all rows; the lines' `own_ns` and `unknown_ns` add up to it."""
    unknown_ns: int
    """Time of rows without a recorded stack, or with no line of the user's in it."""
    lines: tuple[LineTime, ...]
    """The most time of its own first."""
    advice: tuple[Suggestion, ...]
    """Potential gains at these lines, the largest first."""


def lines(timed: TimedLines, sources: Sources | None = None) -> Lines:
    """Make the answer, with the text of the lines from `sources`."""
    times = timed.times
    total_ns = times.total_ns or 1
    every = [line for file in times.files for line in _lines(file, sources, total_ns)]
    return Lines(
        chosen=chosen_rows(timed.kept),
        processor=times.processor,
        total_ns=times.total_ns,
        unknown_ns=times.unknown_ns,
        lines=tuple(sorted(every, key=lambda line: (-line.own_ns, -line.time_ns, line.line))),
        advice=suggestions(timed.placed),
    )


def _lines(file: FileTime, sources: Sources | None, total_ns: int) -> list[LineTime]:
    path = sources.find(file.path) if sources else None
    texts = (read(path) if path else None) or []
    return [
        LineTime(
            line=f"{file.path}:{line.number}",
            file=file.path,
            number=line.number,
            calls=line.calls,
            time_ns=line.total_ns,
            own_ns=line.own_ns,
            share=line.own_ns / total_ns,
            source=texts[line.number - 1].rstrip() if 0 < line.number <= len(texts) else None,
        )
        for line in file.lines
    ]
