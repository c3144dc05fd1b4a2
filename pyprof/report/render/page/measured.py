"""What counters measured, as a section of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.report.analysis.phases import by_phase
from pyprof.report.render import counters
from pyprof.report.render.page.sections import Cell, Sortable, text, without_folders
from pyprof.report.render.text import UNKNOWN

if TYPE_CHECKING:
    from pyprof.report.analysis.overview import Brief

_MOST_ROWS = 500
_TEXTS = ("Op", "Direction")


@dataclass(frozen=True, slots=True)
class Section:
    """Sentences, and a table of ops by kernel."""

    sentences: tuple[str, ...]
    table: Sortable


def section(brief: Brief) -> Section | None:
    """Make the section; None where nothing was measured."""
    if brief.counters is None:
        return None
    phases = by_phase(brief.steps, brief.averaged) if brief.averaged else []
    tokens = sum(phase.tokens or 0 for phase in phases)
    sentences = counters.sentences(brief.counters, brief.step_count, tokens)
    header, rows = counters.columns(brief.counters, _MOST_ROWS)
    columns = [(title, title in _TEXTS) for title in header]
    numbers = counters.numbers(brief.counters, _MOST_ROWS)
    cells = [
        [*map(text, row[: len(_TEXTS)]), *_cells(row[len(_TEXTS) :], header[len(_TEXTS) :], each)]
        for row, each in zip(rows, numbers, strict=True)
    ]
    left_out = max(brief.counters.ops.num_rows - _MOST_ROWS, 0)
    return Section(
        tuple(without_folders(sentence) for sentence in sentences),
        Sortable(columns, cells, left_out),
    )


def _cells(spelt: list[str], titles: list[str], numbers: dict[str, float | None]) -> list[Cell]:
    return [
        Cell(cell, None if cell == UNKNOWN else numbers[title])
        for cell, title in zip(spelt, titles, strict=True)
    ]
