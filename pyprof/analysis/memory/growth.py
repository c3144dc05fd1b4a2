"""What grows from step to step: at the end of each, what is held, and by which lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import student_t
from pyprof.answers.memory_answer import LeakingLine, StepGrowth
from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.allocations.history import History
    from pyprof.arrays import Floats, Int64Array

MIN_STEPS = 3
"""Minimum number of step ends that show growth, besides the first: what is set up there stays."""


def growth(history: History, marked_by: str, ends: Sequence[int]) -> StepGrowth | None:
    """Compare the ends of steps, given as states; None if there are too few."""
    states = np.unique(np.asarray(ends, np.int64))
    if len(states) <= MIN_STEPS:
        return None
    held = tuple(history.held(int(state)) for state in states)
    blocks = history.blocks
    amounts = _sum_at_ends(history, states[1:], blocks.bytes)
    counts = _sum_at_ends(history, states[1:], np.ones(len(blocks), np.int64))
    names = (*history.labels["line"].names, None)
    leaks = [
        LeakingLine(names[row], int(more), rate, int(counts[row, -1] - counts[row, 0]))
        for row, rate in _find_leaks(amounts)
        for more in [int(amounts[row, -1] - amounts[row, 0])]
    ]
    leaks.sort(key=lambda leak: -leak.bytes)
    return StepGrowth(marked_by, held, tuple(leaks))


_MIN_RISES = 3
"""Caches that fill once or twice are not leaks."""
_SIGNIFICANT = 0.001
"""Maximum probability that growth is chance, for all lines together."""
_LITTLE = 0.02
"""Residuals below this share of the variance are no random walk's, which nearly always has more."""
_DRIFT = 0.01
"""With a mean change per step less likely than this by chance, the growth is not a random walk."""
_GOES_ON = 0.25
"""In its second half a leak grows by at least this share of its whole rate."""


def _find_leaks(held: Int64Array) -> list[tuple[int, float]]:
    """List the lines that keep growing, with bytes per step, by what they hold at ends of steps.

    Levels vary from step to step, as batches do: a line leaks if it grows by more than chance
    explains, to new highs at least three times, the last of them in the last third, and in the
    second half, too. Not every step need add: some programs keep something every tenth.
    """
    steps = held.shape[1] - 1
    highest = np.maximum.accumulate(held, axis=1)
    rises = highest[:, 1:] > highest[:, :-1]
    late = rises[:, steps - max(steps // 3, 1) :].any(axis=1)
    often = rises.sum(axis=1) >= min(_MIN_RISES, steps)
    rows = np.flatnonzero(late & often)
    amounts = held[rows].astype(np.float64)
    rate, rest = _fit(amounts)
    significant = (rate > 0) & (_chance(amounts, rate, rest) < _SIGNIFICANT / max(len(held), 1))
    goes_on = _fit(amounts[:, steps // 2 :])[0] >= _GOES_ON * rate
    chosen = significant & goes_on
    return [*zip(rows[chosen].tolist(), rate[chosen].tolist(), strict=True)]


def _centred_range(count: int) -> Floats:
    centred: Floats = np.arange(count, dtype=np.float64) - (count - 1) / 2
    return centred


def _fit(held: Floats) -> tuple[Floats, Floats]:
    """Fit a straight line to each row; return its slope and the residuals."""
    x = _centred_range(held.shape[1])
    slope = held @ x / (x @ x)
    return slope, held - held.mean(axis=1, keepdims=True) - slope[:, None] * x


def _chance(held: Floats, slope: Floats, rest: Floats) -> Floats:
    """Return the probability that levels that do not grow have such a slope.

    Neighbours that deviate alike count as fewer points, by the autocorrelation of the residuals:
    levels may be a random walk. They are not if residuals are next to nothing, or if the mean
    change from step to step is surely not 0.
    """
    count = held.shape[1]
    x = _centred_range(count)
    left = (rest * rest).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.clip(np.nan_to_num((rest[:, 1:] * rest[:, :-1]).sum(axis=1) / left), 0, 1)
        change = np.diff(held)
        drift = change.mean(axis=1) / change.std(axis=1, ddof=1) * np.sqrt(count - 1)
        straight = left <= _LITTLE * (left + slope * slope * (x @ x))
        alike[straight | (_two_sided_p(drift, count - 2) < _DRIFT)] = 0
        freedom = np.maximum(count * (1 - alike) / (1 + alike) - 2, 1)
        return _two_sided_p(slope / np.sqrt(left / (freedom * (x @ x))), freedom)


def _two_sided_p(t: Floats, freedom: Floats | int) -> Floats:
    finite = np.nan_to_num(t, posinf=np.inf, neginf=-np.inf)  # 0 / 0 is not evidence
    return student_t.two_sided_p(finite, np.asarray(freedom, np.float64))


def _sum_at_ends(history: History, states: Int64Array, amount: Int64Array) -> Int64Array:
    """Sum live bytes in each state by line; the last row is for unknown lines."""
    blocks, codes = history.blocks, history.labels["line"].codes
    first = np.searchsorted(states, blocks.allocated, "left")
    last = np.searchsorted(states, blocks.released, "left")
    rows = len(history.labels["line"].names) + 1
    change = np.zeros((rows, len(states) + 1), np.int64)
    index = np.where(codes == MISSING, rows - 1, codes)
    np.add.at(change, (index, first), amount)
    np.add.at(change, (index, np.maximum(first, last)), -amount)
    sums: Int64Array = np.cumsum(change, axis=1)[:, :-1]
    return sums
