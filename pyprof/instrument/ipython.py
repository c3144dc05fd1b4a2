"""Cells of a notebook: what they are called, and which function of IPython runs them."""

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
    """Give `cell [3]` for the code of a cell, and any other file's name as it is.

    IPython compiles a cell under the name of a file that nobody has, and which differs from run to
    run. People know a cell by the number beside it.
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
    """Give the code of the function that calls a cell's code; none outside of IPython."""
    shell = _shell()
    code = getattr(getattr(type(shell), "run_code", None), "__code__", None)
    if code is not None:
        yield code


def _shell() -> Any:  # noqa: ANN401 - IPython's shell, or None
    """Give the shell that runs this process, without importing IPython."""
    ipython = sys.modules.get("IPython")
    get = getattr(ipython, "get_ipython", None)
    return get() if get is not None else None
