"""Predictions of `pyprof whatif` beside what was measured, and their summary by change."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pyprof.analysis.back_test import Interval, Tried
from pyprof.student_t import quantile

NOISE = 0.02
"""Difference of two runs of one program; no interval is narrower."""
MANY = 20
"""From this number of outcomes on, the interval is of their quantiles; of fewer, Student's."""
_CLOSE = 0.15
_FEW = 3
"""With fewer outcomes, the interval is their range, or a wider one of other outcomes."""
_TAIL = 0.05


class Outcome(NamedTuple):
    """One change of one program."""

    change: str
    what: str
    model: str
    expected_ns: float
    real_ns: float
    unchanged_ns: float | None = 0.0
    """Time of kernels that the change does not affect, in both; None if unknown."""

    @property
    def error(self) -> float:
        """The error of the expected time, relative to the real time."""
        return self.expected_ns / self.real_ns - 1

    @property
    def ratio(self) -> float:
        """Real by expected time of what the change affects; NaN if that is unknown."""
        rest = self.unchanged_ns if self.unchanged_ns is not None else float("nan")
        return (self.real_ns - rest) / (self.expected_ns - rest)


def interval(outcomes: Sequence[Outcome]) -> Interval:
    """Return the interval of a further outcome, nominally 90 %; all of one change."""
    logs = np.log([ratio for each in outcomes if not np.isnan(ratio := each.ratio)])
    if len(logs) < _FEW:
        low, high = logs.min(), logs.max()
    elif len(logs) >= MANY:
        low, high = np.quantile(logs, [_TAIL, 1 - _TAIL])
    else:
        freedom = len(logs) - 1
        spread = logs.std(ddof=1) * np.sqrt(1 + 1 / len(logs))
        t = float(quantile(1 - 2 * _TAIL, np.array([freedom]))[0])
        low, high = logs.mean() - t * spread, logs.mean() + t * spread
    return Interval(float(min(np.exp(low), 1 - NOISE)), float(max(np.exp(high), 1 + NOISE)))


def summary(on: str, outcomes: Sequence[Outcome], wider: Interval | None = None) -> Tried:
    """Return what was tried; the interval is no narrower than `wider`."""
    low, high = interval(outcomes)
    if wider is not None:
        low, high = min(low, wider.low), max(high, wider.high)
    errors = np.abs([each.error for each in outcomes])
    covered = [low <= ratio <= high for each in outcomes if not np.isnan(ratio := each.ratio)]
    return Tried(
        on=on,
        outcomes=len(outcomes),
        models=len({each.model for each in outcomes}),
        mean_error=round(float(errors.mean()), 4),
        nine_in_ten=round(float(np.quantile(errors, 0.9)), 4),
        largest_error=round(float(errors.max()), 4),
        within_15_percent=round(float((errors < _CLOSE).mean()), 4),
        low=round(low, 3),
        high=round(high, 3),
        covered=round(float(np.mean(covered)), 4),
    )
