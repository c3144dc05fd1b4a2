"""The user's source with GPU time beside each line."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from pyprof.report import python_source, text
from pyprof.report.text import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.report.source_lines import FileTime, SourceLines

_HEADER = f"{'Line':>6} {'Calls':>7} {'GPU ms':>11} {'%':>6} {'Own ms':>11}  Source"
_EMPTY = " " * (len(_HEADER) - len("Source"))


_SKIPPED = {"site-packages", "dist-packages", "node_modules", "__pycache__"}


_ALIKE = 2
"""Parts of two paths that have to agree, where they have as many: the folder and the name."""


class Sources:
    """The Python files below a folder, and those that the capture names where they still are."""

    def __init__(self, folder: Path | None) -> None:
        """Look below the folder; None: below the current one, and where the capture says."""
        self._in_place = folder is None
        self._folder = folder or Path()
        self._by_name: dict[str, list[Path]] = {}
        for root, folders, names in os.walk(self._folder):
            folders[:] = [name for name in folders if name not in _SKIPPED and name[0] != "."]
            for name in names:
                if name.endswith(".py"):
                    found = Path(root, name).relative_to(self._folder)
                    self._by_name.setdefault(name, []).append(found)

    def find(self, path: str) -> Path | None:
        """Find a captured file: that whose path agrees furthest from its end.

        None: there is no Python file of that name, several agree equally well, or the one that does
        lies in another folder: many projects have a `utils.py`.
        """
        if self._in_place and path.endswith(".py") and Path(path).is_file():
            return Path(path)
        parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
        candidates = self._by_name.get(parts[-1] if parts else "", [])
        counts = [_agreement(found.parts, parts) for found in candidates]
        best = max(counts, default=0)
        named = [one for one, count in zip(candidates, counts, strict=True) if count == best]
        if len(named) != 1 or best < min(len(named[0].parts), len(parts), _ALIKE):
            return None
        return self._folder / named[0]


def _agreement(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def lines(found: SourceLines, sources: Sources) -> Iterator[str]:
    """Show every file with the functions that hold timed lines; without source, the lines alone."""
    whole = found.total_ns or 1
    for file in found.files:
        yield text.heading(
            f"{file.path}: {milliseconds(file.own_ns)} ms, {percent(file.own_ns / whole)} %"
            f" of {found.processor} time"
        )
        yield from _file(file, sources.find(file.path), whole, found.processor)
        yield ""
    yield (
        f"{milliseconds(found.unknown_ns)} ms, {percent(found.unknown_ns / whole)} %"
        f" of {found.processor} time, is tied to no line of yours"
        + ("" if found.files else ": none was recorded, pyprof.init() in the script does")
    )


def _file(file: FileTime, path: Path | None, whole: int, processor: str) -> Iterator[str]:
    source = python_source.read(path) if path is not None else None
    if source is None:
        yield "(source not found: name its folder with --source)"
        source = []
    elif file.lines[-1].number > len(source):
        yield f"({path} is shorter than when it was captured: another version?)"
    timed = {line.number: line for line in file.lines}
    shown = sorted({*_extents(source, timed), *timed})
    yield text.heading(_HEADER.replace("GPU", processor))
    before = None
    for number in shown:
        if source and before is not None and number > before + 1:
            yield f"{_EMPTY}..."
        before = number
        code = source[number - 1] if number <= len(source) else ""
        line = timed.get(number)
        times = (
            f"{line.calls:>7} {milliseconds(line.total_ns):>11} {percent(line.total_ns / whole):>6}"
            f" {milliseconds(line.own_ns):>11}"
            if line
            else " " * 38
        )
        yield f"{number:>6} {times}  {code}".rstrip()


def _extents(source: Sequence[str], timed: Mapping[int, object]) -> Iterator[int]:
    """Give the lines of the innermost functions around timed lines."""
    functions = python_source.functions(source)
    for number in timed:
        function = python_source.around(functions, number)
        yield from range(function.first, function.last + 1) if function else (number,)
