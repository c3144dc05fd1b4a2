"""What counters measured: sentences, and a table of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.sections import Cell, Heading, Sortable, text, without_folders
from pyprof.render.text import counters_text
from pyprof.render.text.formatting import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.summary.counter_totals import CounterTotals
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Measured", 85
_MOST_ROWS = 500
_TEXTS = ("Op", "Direction")


def section(page: Page) -> Mapping[str, Any] | None:
    """Give what was measured; None where nothing was."""
    brief = page.brief
    if brief.counters is None:
        return None
    sentences = counters_text.sentences(brief.counters, brief.step_count, brief.token_count)
    return {"sentences": [*map(without_folders, sentences)], "table": _table(brief.counters)}


def _table(totals: CounterTotals) -> Sortable:
    header, rows = counters_text.columns(totals, _MOST_ROWS)
    columns = [Heading(title, is_text=title in _TEXTS) for title in header]
    numbers = counters_text.numbers(totals, _MOST_ROWS)
    cells = [
        [*map(text, row[: len(_TEXTS)]), *_cells(row[len(_TEXTS) :], header[len(_TEXTS) :], each)]
        for row, each in zip(rows, numbers, strict=True)
    ]
    return Sortable(columns, cells, max(totals.ops.num_rows - _MOST_ROWS, 0))


def _cells(spelt: list[str], titles: list[str], numbers: dict[str, float | None]) -> list[Cell]:
    return [
        Cell(cell, None if cell == UNKNOWN else numbers[title])
        for cell, title in zip(spelt, titles, strict=True)
    ]
