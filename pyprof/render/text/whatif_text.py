"""Predicted changes in the terminal: time now and after, then what the prediction rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.quantities import counted, duration
from pyprof.render.text import formatting as text
from pyprof.render.text.formatting import milliseconds
from pyprof.render.text.layout.text_width import cut_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.answers.whatif_answer import PredictedChange, WhatIf

_HEADER = ["Kernel time after", "Now ms", "Low ms", "Expected ms", "High ms"]


def predicted_changes(answer: WhatIf) -> Iterator[str]:
    """Show a table of changes, what each rests on, and the refusals, with blank lines between."""
    return text.separated(_blocks(answer))


def _blocks(answer: WhatIf) -> Iterator[Iterable[str]]:
    rows = []
    for each in answer.changes:
        time = each.kernels_ns
        figures = (time.now, time.low, time.expected, time.high)
        rows.append([each.change, *map(milliseconds, figures)])
    if rows:
        yield text.layout_table(rows, _HEADER, (0,), {0: cut_end})
    reasons = {each.step_why for each in answer.changes if each.step_why is not None}
    for each in answer.changes:
        sentences = [
            f"{each.change}: {each.code}",
            f"{counted(each.rows, 'row')}; {each.formula}. Assumed: {each.assumption}.",
            f"Tried on {each.validation}.",
        ]
        if len(reasons) > 1 or each.step_ns is not None:
            sentences.append(step_sentence(each, answer.steps))
        yield _wrap_sentences(*sentences)
    if len(reasons) == 1:
        yield _wrap_sentences(_no_step_time(reasons.pop(), answer.steps))
    for bound in answer.bounds:
        gain = duration(bound.gain_ns if bound.gain_step_ns is None else bound.gain_step_ns)
        a_step = "" if bound.gain_step_ns is None else " a step"
        most = f"At most {gain}{a_step}, not tried on pairs of captures: {bound.title}."
        yield _wrap_sentences(f"{bound.change}: {bound.code}", most)
    for refusal in answer.refused:
        yield _wrap_sentences(f"{refusal.change} is not predicted: {refusal.why}.")


def _wrap_sentences(*sentences: str) -> list[str]:
    return [line for sentence in sentences for line in text.wrapped(sentence)]


def step_sentence(change: PredictedChange, steps: int | None) -> str:
    """Return the time of a mean step, or of all work without steps, or why it is not predicted."""
    if change.step_ns is None:
        return _no_step_time(change.step_why, steps)
    time = change.step_ns
    now, low, expected, high = map(duration, (time.now, time.low, time.expected, time.high))
    of = "All" if steps is None else "A step"
    return f"{of}: {now} now, {expected} expected ({low} to {high})."


def _no_step_time(why: str | None, steps: int | None) -> str:
    return f"The time {'as a whole' if steps is None else 'of a step'} is not predicted: {why}."
