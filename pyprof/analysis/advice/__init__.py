"""What the user could change, and how much time it could save: rules over rows and timeline."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.analysis.advice.finding import Advice, AdviceSums, in_order
from pyprof.analysis.advice.registry import TIMES, Scope, find_scope, rules, times_unknown
from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.time.steady import find_loop, with_first_steps
from pyprof.prof.processor import processor_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.analysis.advice.registry import Rule
    from pyprof.analysis.time.steps import Steps
    from pyprof.prof.table import Table

__all__ = ["Advice", "AdviceSums", "RuleContext", "Scope", "advise", "find_scope", "summed"]

_MIN_SHARE = 0.001
"""Advice that saves less than this share of the time is not worth a line."""
_MIN_ONCE = 0.01
"""The same for what happens once, as a share of the whole span."""


def summed(entries: Iterable[Advice], table: Table, chosen_steps: int | None = None) -> AdviceSums:
    """Strip advice of its rows, which refer to the table, so that it can be sent and merged.

    `chosen_steps`: the number of steps that it covers, if the user chose them.
    """
    return AdviceSums(
        tuple(
            replace(entry, rows=entry.rows[:0], steps=chosen_steps or entry.steps)
            for entry in entries
        ),
        table.records.rows,
    )


def advise(context: RuleContext, steps: Steps | None = None) -> list[Advice]:
    """Apply every rule; the largest gain comes first.

    With `steps`, advice on what happens once (before or after the loop, or while it warms up) is
    separate and comes last. Before it comes advice whose gain is unknown. Rules that lack their
    evidence stay silent.
    """
    averaged = steps.averaged if steps is not None else None
    count = averaged and averaged[1] - averaged[0]
    loop = find_loop(context.table.records, steps) if steps is not None else None
    if steps is None or loop is None:
        return in_order(_apply(context, _MIN_SHARE, count))
    # gains are per counted step, so leave out the repeated work around guessed steps
    series = None if count is None else find_loop(context.table.records, steps, unbroken=True)
    counted = series or loop
    steady = context.narrowed(counted.rows, counted.time, once=False)
    entries = _apply(steady, _MIN_SHARE, count)
    if count is None:  # guessed steps hold too little: compare with the whole span
        entries = [replace(entry, of_ns=context.span_ns) for entry in entries]
    gain_by_rule = {entry.rule: entry.gain_ns or 0 for entry in entries}
    # what a rule finds in the loop, it finds in the warm-up steps, too: no second advice
    all_steps = with_first_steps(loop, steps)
    once = (
        replace(entry, once=True, title=f"once, not in every step: {entry.title}")
        for part, of_loop in ((loop, False), (all_steps, True))
        for entry in _apply(
            context.narrowed(~part.rows, part.outside, once=True), _MIN_ONCE, of_ns=context.span_ns
        )
        if (entry.rule in gain_by_rule) == of_loop
        and (entry.gain_ns or 0) > gain_by_rule.get(entry.rule, 0)
    )
    return in_order([*entries, *once])


_OF_IDLE_TIME = {"idle time", "data loading", "compilation", "tensors of Python values"}
"""Subjects of the rules whose gain is time in which a GPU had nothing to do."""


def _find(rule: Rule, context: RuleContext) -> Advice | None:
    """Apply a rule; no step is shorter than the work of its busiest GPU, whatever others idle."""
    if TIMES in rule.needs and times_unknown(context) is not None:
        return None
    advice, gpus = rule.find(context), context.devices
    if advice is None or advice.gain_ns is None or rule.about not in _OF_IDLE_TIME:
        return advice
    if len({gpu.pid for gpu in gpus}) != 1:  # processes need not wait for each other
        return advice
    # waiting for other GPUs, as collectives do, is no such work
    worked_ns = max(context.inside(gpu.compute | gpu.copy).total for gpu in gpus)
    return replace(advice, gain_ns=min(advice.gain_ns, context.span_ns - worked_ns))


_CUDA = re.compile(r"(?<=torch\.)cuda(?=\.)|(?<=')cuda(?=')")
"""Where actions name torch's kind of device."""
_GPU = re.compile(r"\bGPU(?=s?\b)")


def _apply(
    context: RuleContext, least_share: float, steps: int | None = None, *, of_ns: int | None = None
) -> list[Advice]:
    """Apply the rules; drop advice that saves less than a share of `of_ns`, or of the span."""
    of_ns = context.span_ns if of_ns is None else of_ns
    processor = processor_of(context.table.records)  # what users call a GPU
    advice_of_rule = ((name, _find(rule, context)) for name, rule in rules().items())
    return [
        replace(
            advice,
            rule=name,
            title=_GPU.sub(processor, advice.title),
            action=_GPU.sub(processor, _CUDA.sub(context.torch_device, advice.action)),
            of_ns=of_ns,
            steps=steps,
        )
        for name, advice in advice_of_rule
        if advice is not None and (advice.gain_ns is None or advice.gain_ns > least_share * of_ns)
    ]
