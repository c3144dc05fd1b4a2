"""Tables of a page: cells with the number that they sort by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.report.text import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. A text has neither number nor part."""

    text: str
    number: float | None = None
    """What it sorts by; None for a text, and for a number that is not known."""
    part: str | None = None
    """Length of a bar behind it, in %."""
    note: str = ""
    """Shown while the pointer rests on it."""
    sort: str = ""
    """Class that colours a text."""


@dataclass(frozen=True, slots=True)
class Sortable:
    """A table."""

    columns: Sequence[tuple[str, bool]]
    """Title, and whether the column is of texts."""
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    """Rows that the page leaves out to stay small."""


_CUT = 300


def text(value: str | None, note: str = "", sort: str = "") -> Cell:
    """Make a cell of text; very long names are cut, and shown to be."""
    shown = UNKNOWN if value is None else value
    return Cell(shown if len(shown) <= _CUT else f"{shown[:_CUT]}...", note=note[:_CUT], sort=sort)


def number(value: float | None, spelt: str) -> Cell:
    """Make a cell of a number as it is spelt."""
    return Cell(spelt, value)


def share(fraction: float | None) -> Cell:
    """Make a cell of a share with a bar behind it."""
    if fraction is None:
        return Cell(UNKNOWN)
    percent = 100 * fraction
    return Cell(f"{percent:.1f} %", percent, f"{min(percent, 100):.1f}")
