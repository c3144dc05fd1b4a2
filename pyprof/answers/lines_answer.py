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
    """Path of the file as recorded in the capture."""
    number: int
    """Line number, from 1."""
    calls: int
    """Op calls made by the line and by what it calls, forward and backward."""
    time_ns: int
    """GPU time of the line and of what it calls."""
    own_ns: int
    """GPU time without that of other lines of the user's code that it calls."""
    share: float
    """`own_ns` as a share of `total_ns`; all shares and that of `unknown_ns` add up to 1."""
    source: str | None
    """Source text of the line; null without --source, or if no file there matches."""


@answer("lines")
@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Answer):
    """Source lines with their GPU time."""

    chosen: ChosenRows | None
    """The rows that --where chose, to which all figures refer; null without --where."""
    processor: str
    """What the times are of: GPU, NPU or the like; CPU in a capture without one."""
    total_ns: int
    """Summed time of all rows; the lines' `own_ns` and `unknown_ns` add up to it."""
    unknown_ns: int
    """Time of rows without a recorded stack, or with no line of the user's code in it."""
    lines: tuple[LineTime, ...]
    """Sorted by `own_ns`, the largest first."""
    advice: tuple[Suggestion, ...]
    """Potential gains at these lines, the largest first."""
    warnings: tuple[str, ...] = not_in_json(default=())
    """What the captures hide or distort."""

    @property
    def slowest(self) -> list[LineTime]:
        """Return the lines that launched work themselves, those with the most time first."""
        own = [line for line in self.lines if line.own_ns]
        return sorted(own, key=lambda line: (-line.own_ns, line.file, line.number))

    @property
    def files(self) -> list[FileTime]:
        """Group the lines by file, in their order; the file with the most time comes first."""
        by_file: dict[str, list[LineTime]] = {}
        for line in sorted(self.lines, key=lambda line: line.number):
            by_file.setdefault(line.file, []).append(line)
        files = [FileTime(path, tuple(lines)) for path, lines in by_file.items()]
        return sorted(files, key=lambda file: (-file.own_ns, file.path))


class FileTime(NamedTuple):
    """The timed lines of one file."""

    path: str
    """Path of the file as recorded in the capture."""
    lines: tuple[LineTime, ...]

    @property
    def own_ns(self) -> int:
        """GPU time of the work that the lines of the file launched themselves."""
        return sum(line.own_ns for line in self.lines)


def with_source(answer: Lines, text_of: Callable[[str, int], str | None]) -> Lines:
    """Return the answer with the text of its lines, looked up by file and line number."""
    lines = (replace(line, source=text_of(line.file, line.number)) for line in answer.lines)
    return replace(answer, lines=tuple(lines))
