"""The answer of `pyprof lines`: GPU time by source line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer
from pyprof.answers.parts import ChosenRows, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
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
@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Answer):
    """Source lines with their GPU time."""

    chosen: ChosenRows | None
    """The rows that --where chose, which all figures are of; null without --where."""
    processor: str
    """Whose time it is: GPU, NPU or the like; CPU in a capture without one."""
    total_ns: int
    """Summed time of all rows; the lines' `own_ns` and `unknown_ns` add up to it."""
    unknown_ns: int
    """Time of rows without a recorded stack, or with no line of the user's in it."""
    lines: tuple[LineTime, ...]
    """The most time of its own first."""
    advice: tuple[Suggestion, ...]
    """Potential gains at these lines, the largest first."""
    warnings: tuple[str, ...] = not_in_json(default=())
    """What the captures hide or distort."""

    @property
    def slowest(self) -> list[LineTime]:
        """The lines that launched work themselves, the most time first."""
        own = [line for line in self.lines if line.own_ns]
        return sorted(own, key=lambda line: (-line.own_ns, line.file, line.number))

    @property
    def files(self) -> list[FileTime]:
        """The lines of each file in their order, the file with the most time of its own first."""
        by_file: dict[str, list[LineTime]] = {}
        for line in sorted(self.lines, key=lambda line: line.number):
            by_file.setdefault(line.file, []).append(line)
        files = [FileTime(path, tuple(lines)) for path, lines in by_file.items()]
        return sorted(files, key=lambda file: (-file.own_ns, file.path))


class FileTime(NamedTuple):
    """The timed lines of one file."""

    path: str
    """As the capture has it."""
    lines: tuple[LineTime, ...]

    @property
    def own_ns(self) -> int:
        """GPU time that the file's lines launched themselves."""
        return sum(line.own_ns for line in self.lines)


def with_source(answer: Lines, text_of: Callable[[str, int], str | None]) -> Lines:
    """Return the answer with the text of its lines, looked up by file and line number."""
    lines = (replace(line, source=text_of(line.file, line.number)) for line in answer.lines)
    return replace(answer, lines=tuple(lines))
