"""Markdown that shows any text as it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyprof import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#!|~$&])")


def escape(text: str) -> str:
    """Quote what Markdown, or HTML in it, would take for its own; line ends become blanks."""
    return _SPECIAL.sub(r"\\\1", " ".join(safe.cell(text).split()))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [header, rule, *([escape(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
