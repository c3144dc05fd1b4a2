"""The phases of a serving engine's steps: prefill, decode, mixed, with their time and tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.time.steps import find_steps
from pyprof.answers.summary_answer import ServingPhase
from pyprof.arrays import MISSING, sum_if_known
from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.step_rows import StepRows

if TYPE_CHECKING:
    from pyprof.analysis.time.steps import Steps
    from pyprof.arrays import Int64Array
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table


def serving_phases(
    loop_steps: Steps, chosen: tuple[int, int] | None = None
) -> tuple[ServingPhase, ...]:
    """Sum up the steps, or those chosen, by phase, the longest first; () without an engine."""
    low, high = chosen or (0, len(loop_steps))
    stated, took = loop_steps.stated, _without_waits(loop_steps)
    grouped: dict[str, list[int]] = {}
    for index, step in enumerate(stated[low:high], low):
        grouped.setdefault(step.phase, []).append(index)
    phases = []
    for phase in filter(None, grouped):
        indices = grouped[phase]
        tokens = sum_if_known([stated[index].tokens for index in indices])
        padded = sum_if_known([stated[index].padded for index in indices])
        time_ns = int(np.sum(took[indices]))
        tokens_per_s = padding = None
        if tokens is not None:
            tokens_per_s = tokens * NS_PER_S / time_ns if time_ns else None
            padding = 1 - tokens / padded if padded and padded >= tokens else None
        phases.append(
            ServingPhase(
                phase=phase,
                steps=len(indices),
                time_ns=time_ns,
                tokens=tokens,
                tokens_per_s=tokens_per_s,
                padding_share=padding,
            )
        )
    return tuple(sorted(phases, key=lambda phase: -phase.time_ns))


def _without_waits(loop_steps: Steps) -> Int64Array:
    """How long each step took; a prefill from when the host began it.

    It works on new requests alone: an engine that had others would have gone on with them. Of the
    chunks of one prompt this is not true, but nothing tells them from short prompts.
    """
    is_prefill = np.array([step.phase == "prefill" for step in loop_steps.stated], bool)
    if not is_prefill.any():
        return loop_steps.duration_ns
    return loop_steps.duration_ns - np.where(is_prefill, loop_steps.wait_ns, 0)


def token_count(loop_steps: Steps, chosen: tuple[int, int] | None) -> int | None:
    """Count the tokens that the chosen steps worked on; None if one of them does not state it."""
    if chosen is None or not (every := loop_steps.stated):
        return None
    return sum_if_known([step.tokens for step in every[chosen[0] : chosen[1]]])


def of_rows(loop_steps: Steps) -> StepRows:
    """The steps and phases of rows, for the columns `step` and `phase`.

    No row is in a guessed step, which may be a layer.
    """
    of_row = np.full_like(loop_steps.of_row, MISSING) if loop_steps.guessed else loop_steps.of_row
    steps = loop_steps.stated
    return StepRows(
        of_row,
        tuple(step.phase for step in steps),
        tuple(step.tokens for step in steps),
        _without_waits(loop_steps),
    )


def with_steps(source: Source) -> Table:
    """The table of a source, after finding the steps of its rows."""
    source.table.steps = of_rows(find_steps(source.table.records, source.capture))
    return source.table
