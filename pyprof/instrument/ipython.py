"""Notebook cells: their names, and the IPython function that runs them."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

_PROMPT = re.compile(r"In\[(.+)\]")


def file_name(filename: str) -> str:
    """Return `cell [3]` for the code of a notebook cell, any other file name unchanged.

    IPython compiles each cell under a made-up file name that differs from run to run; people know a
    cell by its prompt number.
    """
    shell = _shell()
    if shell is None:
        return filename
    with suppress(Exception):  # IPython's own; a file's name is not worth an error
        _, label = shell.compile.format_code_name(filename) or ("", "")
        if match := _PROMPT.fullmatch(label):
            return f"cell [{match[1]}]"
    return filename


def runners() -> Iterator[CodeType]:
    """Yield the code of IPython's function that runs a cell; nothing outside IPython."""
    shell = _shell()
    code = getattr(getattr(type(shell), "run_code", None), "__code__", None)
    if code is not None:
        yield code


def _shell() -> Any:  # noqa: ANN401 - IPython's shell, or None
    """Return the shell of this process, without importing IPython."""
    ipython = sys.modules.get("IPython")
    get = getattr(ipython, "get_ipython", None)
    return get() if get is not None else None
