"""The user's source with GPU time beside each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report import python_source, text
from pyprof.report.text import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.report.python_source import Sources
    from pyprof.report.source_lines import FileTime, SourceLines

_HEADER = f"{'Line':>6} {'Calls':>7} {'GPU ms':>11} {'%':>6} {'Own ms':>11}  Source"
_EMPTY = " " * (len(_HEADER) - len("Source"))


def lines(found: SourceLines, sources: Sources | None) -> Iterator[str]:
    """Show every file with the functions that hold timed lines; without source, the lines alone."""
    whole = found.total_ns or 1
    for file in found.files:
        yield text.heading(
            f"{file.path}: {milliseconds(file.own_ns)} ms, {percent(file.own_ns / whole)} %"
            f" of {found.processor} time"
        )
        yield from _file(file, sources, whole, found.processor)
        yield ""
    yield (
        f"{milliseconds(found.unknown_ns)} ms, {percent(found.unknown_ns / whole)} %"
        f" of {found.processor} time, is tied to no line of yours"
        + ("" if found.files else ": none was recorded, pyprof.init() in the script does")
    )


def _file(file: FileTime, sources: Sources | None, whole: int, processor: str) -> Iterator[str]:
    path = sources.find(file.path) if sources is not None else None
    source = python_source.read(path) if path is not None else None
    if sources is None:
        yield "(a file to be sent holds no source, unless --source names its folder)"
    elif source is None:
        yield "(source not found: name its folder with --source)"
    elif file.lines[-1].number > len(source):
        yield f"({path} is shorter than when it was captured: another version?)"
    source = source or []
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
