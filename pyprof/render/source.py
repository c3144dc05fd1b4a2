"""Python files as people read them: their lines, the functions in them, what a line is called.

A capture names files as it likes. `Sources` alone leads from such a name to a file, and only to
one below the folder that the user gave; `read` alone opens it.
"""

from __future__ import annotations

import ast
import io
import os
import stat
import tokenize
import warnings
from functools import cache, cached_property
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, NamedTuple

from pyprof import cli
from pyprof.render.text import formatting as text
from pyprof.render.text.formatting import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.analysis.summary.source_lines import FileTime, SourceLines


class Function(NamedTuple):
    """A function, with its decorators."""

    first: int
    last: int
    name: str


_SKIPPED = {"site-packages", "dist-packages", "node_modules", "__pycache__"}
_DEVICES = tuple(map(Path, ("/dev", "/proc", "/sys")))

_ALIKE = 2
"""Parts of two paths that have to agree, where they have as many: the folder and the name."""


class Sources:
    """The Python files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._spellings = (self._folder, folder.absolute())

    def find(self, path: str) -> Path | None:
        """Find a captured file: by its own path, else that whose path agrees furthest from its end.

        None: there is no Python file of that name, several agree equally well, or the one that does
        lies in another folder: many projects have a `utils.py`. Also where a link leads out of the
        folder. Raises PyprofError for a file that is the command's output.
        """
        if not path.endswith(".py") or _of_device(Path(path)):
            return None
        file = self._in_place(path) or self._alike(path)
        if file is not None:
            cli.register_inputs([str(file)])
        return file

    def _in_place(self, path: str) -> Path | None:
        if path.startswith(("//", "\\")):  # another host's
            return None
        for folder in self._spellings:  # one that is absolute stays so
            file = self._inside(folder / path)
            if file is not None and os.path.isfile(file):  # noqa: PTH113 - takes any length
                return file
        return None

    def _alike(self, path: str) -> Path | None:
        parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
        candidates = self._by_name.get(parts[-1] if parts else "", [])
        counts = [_common_ending(candidate.parts, parts) for candidate in candidates]
        best = max(counts, default=0)
        named = [one for one, count in zip(candidates, counts, strict=True) if count == best]
        if len(named) != 1 or best < min(len(named[0].parts), len(parts), _ALIKE):
            return None
        return self._inside(self._folder / named[0])

    def _inside(self, path: Path) -> Path | None:
        """Give where links lead; None where that is not below the folder, or a device's."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError, ValueError):  # links in a circle; no name at all
            return None
        return target if target.is_relative_to(self._folder) and not _of_device(target) else None

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        by_name: dict[str, list[Path]] = {}
        for file in self._files():
            by_name.setdefault(file.name, []).append(file.relative_to(self._folder))
        return by_name

    def _files(self) -> Iterator[Path]:
        for root, folders, names in os.walk(self._folder):
            folders[:] = [
                name
                for name in folders
                if name not in _SKIPPED and name[0] != "." and not _of_device(Path(root, name))
            ]
            yield from (Path(root, name) for name in names if name.endswith(".py"))


def _of_device(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _DEVICES)


def _common_ending(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_MOST_BYTES = 1 << 22
"""Of a file that somebody wrote by hand."""


def read(path: Path) -> list[str] | None:
    """Give a file's lines with tabs expanded; None where it cannot be read as Python is."""
    try:
        content = _content(path)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = io.TextIOWrapper(io.BytesIO(content), encoding).read()
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return None
    *lines, last = text.expandtabs().split("\n")  # as Python counts them
    return [*lines, last] if last else lines


def _content(path: Path) -> bytes:
    """Read a regular file; raise OSError for any other, without waiting for a pipe's other end."""
    if not stat.S_ISREG(path.lstat().st_mode):  # to open some devices is to use them
        raise OSError
    flags = ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MOST_BYTES:
            raise OSError
        return file.read(_MOST_BYTES)


def functions_in(source: Sequence[str]) -> list[Function]:
    """Find the functions of a source, the shortest first; none where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's to mend
            module = ast.parse("\n".join(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    functions = [
        Function(
            min([node.lineno, *(part.lineno for part in node.decorator_list)]),
            node.end_lineno,
            node.name,
        )
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno
    ]
    return sorted(functions, key=lambda function: function.last - function.first)


def around(candidates: Sequence[Function], number: int) -> Function | None:
    """Give the innermost function around a line; `candidates` as `functions` gives it."""
    return next((each for each in candidates if each.first <= number <= each.last), None)


class LineNames:
    """What lines of files are called, each file read once; without sources, none is."""

    def __init__(self, sources: Sources | None) -> None:
        self._sources = sources
        self.name = cache(self._name)
        """Gives the function around a line, else the line's text, else `file.py:12`."""
        self._file = cache(self._read)

    def _name(self, file: str, number: int) -> str:
        _, functions = self._file(file)
        if (function := around(functions, number)) is not None:
            return function.name
        return (
            self.text(file, number) or f"{PureWindowsPath(file).name}:{number}"
        )  # which splits at / as well

    def text(self, file: str, number: int) -> str:
        """Give a line's text; "" where its file is not there, or shorter."""
        source, _ = self._file(file)
        return source[number - 1].strip() if 0 < number <= len(source) else ""

    def _read(self, file: str) -> tuple[list[str], list[Function]]:
        path = self._sources.find(file) if self._sources is not None else None
        source = (read(path) if path is not None else None) or []
        return source, functions_in(source)


# The slowest lines, then the user's source with GPU time beside each line.


_LONGEST_LINE = 50
"""Cells of a line's name beside its source."""


def slowest_lines(totalled: SourceLines, sources: Sources | None, limit: int) -> Iterator[str]:
    """Rank lines by the time of what they launched themselves; those that only call are counted."""
    total_ns, slowest = totalled.total_ns or 1, totalled.slowest
    if slowest:
        read_line = LineNames(sources).text
        rows = [
            [
                milliseconds(line.own_ns), percent(line.own_ns / total_ns),
                milliseconds(line.total_ns), str(line.calls), f"{path}:{line.number}",
                read_line(path, line.number),
            ]
            for path, line in slowest[:limit]
        ]  # fmt: skip
        source = "Source" if any(row[-1] for row in rows) else ""
        header = ["Own ms", "%", f"{totalled.processor} ms", "Calls", "Slowest lines", source]
        shown = text.table(_fitted(rows, header), header, (4, 5))
        yield text.heading(shown[0])
        yield from shown[1:]
    if rest := slowest[limit:]:
        share = percent(sum(line.own_ns for _, line in rest) / total_ns)
        time = f"{share} % of {totalled.processor} time"
        yield f"... and {len(rest)} more, {time} (--top {len(slowest)})"
    if totalled.unknown_ns or not totalled.files:
        yield from _unknown(totalled)
    if calling := totalled.only_calling:
        yield from text.wrapped(
            f"{len(calling)} line{'s' * (len(calling) > 1)} only call{'s' * (len(calling) == 1)}"
            " others of yours (--full lists them)"
        )
    yield from _without_source([path for path, _ in slowest], sources)


def _unknown(totalled: SourceLines) -> Iterator[str]:
    total_ns = totalled.total_ns or 1
    unknown = (
        f"{milliseconds(totalled.unknown_ns)} ms, {percent(totalled.unknown_ns / total_ns)} %"
        f" of {totalled.processor} time, is tied to no line of yours"
    )
    if not totalled.files:
        unknown += ": no lines were recorded; pyprof.init() in the script records them"
    yield from text.wrapped(unknown)


def _without_source(paths: Sequence[str], sources: Sources | None) -> Iterator[str]:
    """Say which files' source is not shown, and how it would be."""
    files = dict.fromkeys(paths)
    if files and sources is None:
        yield "(files include source only if --source names its folder)"
    elif absent := [path for path in files if sources is not None and sources.find(path) is None]:
        count = f"{len(absent)} of {len(files)} files"
        yield f"(source of {count} not found; name its folder with --source)"


def _fitted(rows: Sequence[Sequence[str]], header: Sequence[str]) -> list[list[str]]:
    """Cut names of lines at their beginning, and source at its end, to fit `text.WIDTH`."""
    wide = text.widths(rows, header)
    room = text.WIDTH - sum(wide[:4]) - 2 * (len(wide) - 1)
    name = max(min(wide[4], _LONGEST_LINE), room - wide[5])
    return [
        [*row[:4], text.cut_left(row[4], name), text.cut(row[5], max(room - name, 0))]
        for row in rows
    ]


def annotated_source(
    totalled: SourceLines, sources: Sources | None, *, full: bool = False
) -> Iterator[str]:
    """Show every file with the functions that hold timed lines; without source, the lines alone.

    Unless all is asked for in `full`, a file without source, of which all is said in the ranking,
    and functions and lines that only call others are left out, and source is cut to `WIDTH`.
    """
    total_ns = totalled.total_ns or 1
    for file in totalled.files:
        path = sources.find(file.path) if sources is not None else None
        source = read(path) if path is not None else None
        if not full and (source is None or not file.own_ns):
            continue
        share = percent(file.own_ns / total_ns)
        time = f"{milliseconds(file.own_ns)} ms, {share} % of {totalled.processor} time"
        yield text.heading(f"{text.cut_left(file.path, text.WIDTH - len(time) - 2)}: {time}")
        if source is not None and file.lines[-1].number > len(source):
            yield f"({path} is shorter than when it was captured; another version?)"
        header = ("Line", "Calls", f"{totalled.processor} ms", "%", "Own ms", "Source")
        rows = [*_file(file, source or [], total_ns, full=full)]
        if not full:
            room = text.WIDTH - sum(text.widths(rows, header)[:-1]) - 2 * (len(header) - 1)
            rows = [[*row[:-1], text.cut(row[-1], room)] for row in rows]
        first, *rest = text.table(rows, header, (len(header) - 1,))
        yield text.heading(first)
        yield from rest
        yield ""


def _file(file: FileTime, source: Sequence[str], total: int, *, full: bool) -> Iterator[list[str]]:
    """Give the cells of each line to show; `...` where lines are left out."""
    timed = {line.number: line for line in file.lines}
    asked = [line.number for line in file.lines if full or line.own_ns]
    before = None
    for number in sorted({*_extents(source, asked), *asked}):
        if source and before is not None and number > before + 1:
            yield [*[""] * 5, "..."]
        before = number
        code = source[number - 1] if number <= len(source) else ""
        line = timed.get(number)
        times = (
            [str(line.calls), milliseconds(line.total_ns), percent(line.total_ns / total),
             milliseconds(line.own_ns)]
            if line
            else [""] * 4
        )  # fmt: skip
        yield [str(number), *times, code]


def _extents(source: Sequence[str], timed: Sequence[int]) -> Iterator[int]:
    """Give the lines of the innermost functions around timed lines."""
    functions = functions_in(source)
    for number in timed:
        function = around(functions, number)
        yield from range(function.first, function.last + 1) if function else (number,)
