"""What counters measured: sentences, and a table of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.sections import Cell, Heading, Sortable, text, without_folders
from pyprof.render.text import counters_text
from pyprof.render.text.formatting import DASH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.summary_answer import Measured
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Measured", 85
_MAX_ROWS = 500
_TEXTS = ("Op", "Direction")


def section(page: Page) -> Mapping[str, Any] | None:
    """What was measured; None if nothing was."""
    measured = page.answer.measured
    if measured is None:
        return None
    sentences = counters_text.sentences(measured, page.answer.known_cost.total_ns)
    return {"sentences": [*map(without_folders, sentences)], "table": _table(measured)}


def _table(measured: Measured) -> Sortable:
    header, rows = counters_text.columns(measured, _MAX_ROWS)
    columns = [Heading(title, is_text=title in _TEXTS) for title in header]
    numbers = counters_text.numbers(measured, _MAX_ROWS)
    cells = [
        [*map(text, row[: len(_TEXTS)]), *_cells(row[len(_TEXTS) :], header[len(_TEXTS) :], each)]
        for row, each in zip(rows, numbers, strict=True)
    ]
    return Sortable(columns=columns, rows=cells, left_out=max(len(measured.ops) - _MAX_ROWS, 0))


def _cells(spelt: list[str], titles: list[str], numbers: dict[str, float | None]) -> list[Cell]:
    return [
        Cell(cell, None if cell == DASH else numbers[title])
        for cell, title in zip(spelt, titles, strict=True)
    ]
