"""Predicted changes in the terminal: time now and after, then what the prediction rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.render.text import formatting as text
from pyprof.render.text.formatting import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.answers.whatif_answer import WhatIf

_HEADER = ["Change", "Now ms", "Low ms", "Expected ms", "High ms"]


def predicted_changes(answer: WhatIf) -> Iterator[str]:
    """Show a table of changes, what each rests on, and the refusals."""
    rows = []
    for each in answer.changes:
        time = each.kernels_ns
        figures = (time.now, time.low, time.expected, time.high)
        rows.append([each.change, *map(milliseconds, figures)])
    if rows:
        shown = text.table(rows, _HEADER, (0,))
        yield text.heading(shown[0])
        yield from shown[1:]
    for each in answer.changes:
        yield ""
        yield from text.wrapped(f"{each.change}: {each.code}")
        yield from text.wrapped(f"{each.rows} rows; {each.formula}. Assumed: {each.assumption}.")
        yield from text.wrapped(f"Tried on {each.validation}.")
    for refusal in answer.refused:
        yield ""
        yield from text.wrapped(f"{refusal.change} is not predicted: {refusal.why}.")
