"""Python files as people read them: their lines, the functions in them, what a line is called."""

from __future__ import annotations

import ast
import tokenize
import warnings
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Function(NamedTuple):
    """A function, with its decorators."""

    first: int
    last: int
    name: str


def read(path: Path) -> list[str] | None:
    """Give a file's lines with tabs expanded; None where it cannot be read as Python is."""
    try:
        with tokenize.open(path) as file:
            return file.read().expandtabs().splitlines()
    except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
        return None


def functions(source: Sequence[str]) -> list[Function]:
    """Find the functions of a source, the shortest first; none where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user's to mend
            module = ast.parse("\n".join(source))
    except (SyntaxError, ValueError):
        return []
    found = [
        Function(
            min([node.lineno, *(part.lineno for part in node.decorator_list)]),
            node.end_lineno,
            node.name,
        )
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno
    ]
    return sorted(found, key=lambda function: function.last - function.first)


def around(found: Sequence[Function], number: int) -> Function | None:
    """Give the innermost function around a line; `found` as `functions` gives it."""
    return next((each for each in found if each.first <= number <= each.last), None)


class LineNames:
    """What lines of files are called, each file read once, where it lies."""

    def __init__(self) -> None:
        self.name = cache(self._name)
        """Gives the function around a line, else the line's text, else `file.py:12`."""
        self._file = cache(self._read)

    def _name(self, file: str, number: int) -> str:
        source, found = self._file(file)
        if (function := around(found, number)) is not None:
            return function.name
        text = source[number - 1].strip() if 0 < number <= len(source) else ""
        return text or f"{PureWindowsPath(file).name}:{number}"  # which splits at / as well

    def _read(self, file: str) -> tuple[list[str], list[Function]]:
        source = (read(Path(file)) if file.endswith(".py") else None) or []
        return source, functions(source)
