"""What counters measured: sentences, and a table of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import Cell, of_numbers, of_texts, sortable, text, without_folders
from pyprof.render.text import counters_text
from pyprof.render.text.formatting import part_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.summary_answer import MeasuredOp
    from pyprof.render.page import tables
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Measured", 85
_MAX_ROWS = 500


def section(page: Page) -> Mapping[str, Any] | None:
    """What was measured; None if nothing was."""
    measured = page.answer.measured
    if measured is None:
        return None
    sentences = counters_text.sentences(measured, page.answer.known_cost.total_ns)
    columns: Sequence[tables.Column[MeasuredOp]] = (
        (of_texts("Op"), lambda op: text(str(op.op or op.kernel))),
        (of_texts("Direction"), lambda op: text(part_name(op.dir))),
        *map(_column, counters_text.columns(measured.ops[:_MAX_ROWS])),
    )
    return {
        "sentences": [*map(without_folders, sentences)],
        "table": sortable(measured.ops, columns, _MAX_ROWS),
    }


def _column(column: counters_text.Column) -> tables.Column[MeasuredOp]:
    title, value, form = column
    return of_numbers(title), lambda op: Cell(form(value(op)), value(op))
