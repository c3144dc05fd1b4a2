"""The Python files that a capture names: their lines, and the functions in them.

Names in a capture may be anything. Only `Sources` maps such a name to a file, and only to one below
the folder that the user named; only `read` opens it.
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

from pyprof.process import overwrite_guard

if TYPE_CHECKING:
    from collections.abc import Sequence


class Function(NamedTuple):
    """A function, with its decorators."""

    first: int
    last: int
    name: str


_SKIPPED = {"site-packages", "dist-packages", "node_modules", "__pycache__"}
"""Folders that hold no code of the project's own."""
_DEVICES = tuple(map(Path, ("/dev", "/proc", "/sys")))

_ALIKE = 2
"""Number of path parts that must agree, if both paths have as many: the folder and the name."""


class Sources:
    """The Python files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._spellings = (self._folder, folder.absolute())
        self.lines = cache(self._lines)
        """The lines of a captured file, read once; [] if it is not found."""

    def find(self, path: str) -> Path | None:
        """Find a captured file: by its own path, else by the longest ending in common with it.

        None if there is no Python file of that name, if several agree equally well, or if the best
        one lies in another folder: many projects have a `utils.py`. Also if a link leads out of the
        folder. Raises PyprofError for a file that is the command's output.
        """
        if not path.endswith(".py") or _of_device(Path(path)):
            return None
        file = self._in_place(path) or self._find_by_ending(path)
        if file is not None:
            overwrite_guard.current().reads([str(file)])
        return file

    def _lines(self, path: str) -> list[str]:
        file = self.find(path)
        return (read(file) if file is not None else None) or []

    def line(self, path: str, number: int) -> str | None:
        """Return a line of a captured file, with its indent; None if it is not found."""
        lines = self.lines(path)
        return lines[number - 1].rstrip() if 0 < number <= len(lines) else None

    def _in_place(self, path: str) -> Path | None:
        if path.startswith(("//", "\\")):  # another host's
            return None
        for folder in self._spellings:  # an absolute path stays as it is
            file = self._inside(folder / path)
            if file is not None and os.path.isfile(file):  # noqa: PTH113 - takes any length
                return file
        return None

    def _find_by_ending(self, path: str) -> Path | None:
        parts = (PureWindowsPath(path) if "\\" in path else PurePosixPath(path)).parts
        candidates = self._by_name.get(parts[-1] if parts else "", [])
        counts = [_common_ending(candidate.parts, parts) for candidate in candidates]
        best = max(counts, default=0)
        named = [one for one, count in zip(candidates, counts, strict=True) if count == best]
        if len(named) != 1 or best < min(len(named[0].parts), len(parts), _ALIKE):
            return None
        return self._inside(self._folder / named[0])

    def _inside(self, path: Path) -> Path | None:
        """Resolve links; None if the target is not below the folder, or is a device."""
        try:
            target = path.resolve()
        except (OSError, RuntimeError, ValueError):  # circular links; invalid names
            return None
        return target if target.is_relative_to(self._folder) and not _of_device(target) else None

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        by_name: dict[str, list[Path]] = {}
        for root, folders, names in os.walk(self._folder):
            folders[:] = [
                name
                for name in folders
                if name not in _SKIPPED and name[0] != "." and not _of_device(Path(root, name))
            ]
            for name in filter(lambda name: name.endswith(".py"), names):
                by_name.setdefault(name, []).append(Path(root, name).relative_to(self._folder))
        return by_name


def _of_device(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _DEVICES)


def _common_ending(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


_MAX_BYTES = 1 << 22
"""Maximum size of a file that was written by hand."""


def read(path: Path) -> list[str] | None:
    """The lines of a file with tabs expanded; None if Python could not read it."""
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
    if not stat.S_ISREG(path.lstat().st_mode):  # opening some devices has side effects
        raise OSError
    flags = ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
    handle = os.open(path, os.O_RDONLY | sum(getattr(os, flag, 0) for flag in flags))
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _MAX_BYTES:
            raise OSError
        return file.read(_MAX_BYTES)


def functions_in(source: Sequence[str]) -> list[Function]:
    """The functions of a source, the shortest first; [] if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the user's code
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
    """The innermost function around a line; `candidates` are those of `functions_in`."""
    return next((each for each in candidates if each.first <= number <= each.last), None)


class LineNames:
    """Names for lines of files; without sources, no file is read."""

    def __init__(self, sources: Sources | None) -> None:
        self._sources = sources
        self._functions = cache(lambda file: functions_in(sources.lines(file)) if sources else [])
        self.name = cache(self._name)
        """The function around a line, else the line's text, else `file.py:12`."""

    def _name(self, file: str, number: int) -> str:
        if (function := around(self._functions(file), number)) is not None:
            return function.name
        name = PureWindowsPath(file).name  # which splits at / as well
        return self.text(file, number) or f"{name}:{number}"

    def text(self, file: str, number: int) -> str:
        """The text of a line; "" if its file is not found, or shorter."""
        line = self._sources.line(file, number) if self._sources is not None else None
        return (line or "").strip()
