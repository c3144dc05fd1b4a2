"""What prediction rules were tested on, and their errors: results of `benchmarks/whatif.py`.

The file beside this one is written by that script; intervals and texts follow from it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyprof.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIN_OUTCOMES = 20
"""Minimum number of outcomes for a statement about nine in ten."""
RESULTS = Path(__file__).with_name("back_test.json")


class Interval(NamedTuple):
    """The 5 % and 95 % quantiles of real over expected time of the rows that a change affects."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The outcomes of one rule."""

    on: str
    """What they are outcomes of: "2 pairs of captures"."""
    outcomes: int
    models: int
    """Different programs among them."""
    mean_error: float
    """Mean error of the expected time, relative to the real one."""
    nine_in_ten: float
    """The error that 90 % of the outcomes do not exceed."""
    largest_error: float
    within_15_percent: float
    """Share of the outcomes."""
    low: float
    """Lower end of the interval: real over expected time of what the change affects."""
    high: float
    covered: float
    """Share of the outcomes in the interval."""

    @property
    def interval(self) -> Interval:
        """The interval as the rules take it."""
        return Interval(self.low, self.high)

    @property
    def text(self) -> str:
        """One phrase on the outcomes and their errors."""
        if self.outcomes == 1:
            return f"{self.on}: error {percent(self.mean_error)}"
        most = (
            f" 90 % within ±{percent(self.nine_in_ten)}," if self.outcomes >= _MIN_OUTCOMES else ""
        )
        return (
            f"{self.on}: mean error {percent(self.mean_error)},{most} largest"
            f" {percent(self.largest_error)}; {percent(self.covered)} in the interval"
        )


@lru_cache(maxsize=1)
def results() -> Mapping[str, Tried]:
    """Return the outcomes by change."""
    return {
        change: Tried(**each) for change, each in json.loads(RESULTS.read_text("utf-8")).items()
    }


def tried(change: str) -> Tried:
    """Return the outcomes of a rule."""
    return results()[change]
