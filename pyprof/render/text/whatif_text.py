"""Predicted changes in the terminal: time now and after, then what the prediction rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.render.text import formatting as text
from pyprof.render.text.formatting import duration, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.answers.whatif_answer import PredictedChange, UpperBound, WhatIf

_HEADER = ["Kernel time after", "Now ms", "Low ms", "Expected ms", "High ms"]


def predicted_changes(answer: WhatIf) -> Iterator[str]:
    """Show a table of changes, what each rests on, and the refusals."""
    rows = []
    for each in answer.changes:
        time = each.kernels_ns
        figures = (time.now, time.low, time.expected, time.high)
        rows.append([each.change, *map(milliseconds, figures)])
    if rows:
        yield from text.headed(text.table(rows, _HEADER, (0,)))
    reasons = {each.step_why for each in answer.changes if each.step_why is not None}
    for each in answer.changes:
        yield ""
        yield from text.wrapped(f"{each.change}: {each.code}")
        yield from text.wrapped(f"{each.rows} rows; {each.formula}. Assumed: {each.assumption}.")
        yield from text.wrapped(f"Tried on {each.validation}.")
        if len(reasons) > 1 or each.step_ns is not None:
            yield from text.wrapped(step_sentence(each, answer.steps))
    if len(reasons) == 1:
        yield ""
        yield from text.wrapped(f"The time of a step is not predicted: {reasons.pop()}.")
    for bound in answer.bounds:
        yield ""
        yield from text.wrapped(f"{bound.change}: {bound.code}")
        yield from text.wrapped(bound_sentence(bound))
    for refusal in answer.refused:
        yield ""
        yield from text.wrapped(f"{refusal.change} is not predicted: {refusal.why}.")


def step_sentence(change: PredictedChange, steps: int | None) -> str:
    """Return the time of a mean step, or of all work without steps, or why it is not predicted."""
    if change.step_ns is None:
        return f"The time of a step is not predicted: {change.step_why}."
    time = change.step_ns
    now, low, expected, high = map(duration, (time.now, time.low, time.expected, time.high))
    of = "All" if steps is None else "A step"
    return f"{of}: {now} now, {expected} expected ({low} to {high})."


def bound_sentence(bound: UpperBound) -> str:
    """Return the most that a change could gain, and why."""
    gain = duration(bound.gain_ns if bound.gain_step_ns is None else bound.gain_step_ns)
    a_step = "" if bound.gain_step_ns is None else " a step"
    return f"At most {gain}{a_step}, not tried on pairs of captures: {bound.title}."
