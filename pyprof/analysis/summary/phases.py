"""The phases of a serving engine's steps: prefill, decode, mixed, with their time and tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.time.steps import find_steps
from pyprof.arrays import MISSING, sum_if_known
from pyprof.marker import ServingStep, serving_step
from pyprof.parse.ranges.texts import answers
from pyprof.prof.step_rows import StepRows

if TYPE_CHECKING:
    from pyprof.analysis.time.steps import Steps
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table

_NANO = 1e9
_DIGITS = re.compile(r"\d+")
_UNKNOWN = ServingStep("")


@dataclass(frozen=True, slots=True)
class PhaseTotals:
    """The steps of one phase."""

    phase: str
    steps: int
    duration_ns: int
    tokens: int | None
    """That they worked on, without padding; None where not all of them tell."""
    padded: int | None = None
    """That they computed, with what fills up their graphs; None where not all of them tell."""

    @property
    def padding(self) -> float | None:
        """Give the share of the tokens computed that are padding; None where it is not known."""
        if self.tokens is None or not self.padded or self.padded < self.tokens:
            return None
        return 1 - self.tokens / self.padded

    @property
    def tokens_per_s(self) -> float | None:
        """Give tokens over time; None where either is not known."""
        if self.tokens is None or not self.duration_ns:
            return None
        return self.tokens * _NANO / self.duration_ns


def said(loop_steps: Steps) -> tuple[ServingStep, ...]:
    """Give what is said of each step; () where no serving engine's ranges are around them."""
    return _said(loop_steps.texts)


@lru_cache(maxsize=4)
def _said(texts: tuple[str, ...]) -> tuple[ServingStep, ...]:
    if not any(answers(texts, _is_said)):
        return ()
    every = [serving_step(text) for text in texts]
    return tuple(step or _UNKNOWN for step in every) if any(every) else ()


def _is_said(text: str) -> bool:
    """Tell whether a text says something of a step, but for numbers that no engine writes."""
    return serving_step(_DIGITS.sub("0", text)) is not None


def by_phase(loop_steps: Steps, chosen: tuple[int, int] | None = None) -> list[PhaseTotals]:
    """Sum up the steps, or those chosen, by phase, the longest first; [] where none is known."""
    low, high = chosen or (0, len(loop_steps))
    grouped: dict[str, list[int]] = {}
    every = said(loop_steps)
    for place, step in enumerate(every[low:high], low):
        grouped.setdefault(step.phase, []).append(place)
    totals = [
        _totals(phase, places, loop_steps, every) for phase, places in grouped.items() if phase
    ]
    return sorted(totals, key=lambda total: -total.duration_ns)


def _totals(
    phase: str, places: list[int], loop_steps: Steps, every: tuple[ServingStep, ...]
) -> PhaseTotals:
    tokens = sum_if_known([every[place].tokens for place in places])
    padded = sum_if_known([every[place].padded for place in places])
    return PhaseTotals(
        phase, len(places), int(np.sum(loop_steps.duration_ns[places])), tokens, padded
    )


def token_count(loop_steps: Steps, chosen: tuple[int, int] | None) -> int | None:
    """Count the tokens that the chosen steps worked on; None where not all of them tell."""
    if chosen is None or not (every := said(loop_steps)):
        return None
    return sum_if_known([step.tokens for step in every[chosen[0] : chosen[1]]])


def of_rows(loop_steps: Steps) -> StepRows:
    """Give the steps and phases of rows, for the columns that tell them.

    Rows are in no step that is guessed: it may be a layer.
    """
    of_row = np.full_like(loop_steps.of_row, MISSING) if loop_steps.guessed else loop_steps.of_row
    steps = said(loop_steps)
    return StepRows(
        of_row,
        tuple(step.phase for step in steps),
        tuple(step.tokens for step in steps),
        loop_steps.duration_ns,
    )


def with_steps(source: Source) -> Table:
    """Give the table of a source, which then knows the steps of its rows."""
    source.table.steps = of_rows(find_steps(source.table.records, source.capture))
    return source.table
