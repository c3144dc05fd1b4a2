"""How much faster a change makes a script: a ratio of medians with an interval.

Runs are samples. Each is the median of its steps, in logarithms; a change is compared with the
baselines before and after it, so that slow drift cancels. How much runs vary is estimated from
neighbouring runs of the same variant, and is at least what the steps of a run show (`diff.noise`);
the interval is Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pyprof import student_t
from pyprof.analysis.diff import noise
from pyprof.answers.try_answer import TimeRatio
from pyprof.trial.experiment import BASELINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Floats, Mask
    from pyprof.trial.experiment import TrialRun, Variant
    from pyprof.trial.run_files import RunResult

BUSY_SPREAD = 0.05
"""Variation between runs of the same code above which the machine counts as busy."""
_WARM_UP = 3
"""Steps left out at the beginning; of fewer than nine steps a third."""
_GROUP = 4
"""Consecutive steps whose mean is one sample, if that leaves at least as many samples."""
_MIN_SPREAD = 0.002
"""Minimum assumed spread of runs: nothing repeats more exactly."""
_PRECISE = 0.05
"""An interval that holds 1 leaves nothing open if half of its width is at most this."""


@dataclass(frozen=True)
class Timing:
    """The times with a change, relative to those without it."""

    ratio: TimeRatio
    spread: float
    """Standard deviation of runs of the same variant, relative."""

    @property
    def undecided(self) -> bool:
        """Whether the comparison is open, and more runs may decide it."""
        low, high = self.ratio.low, self.ratio.high
        return low <= 1 <= high and math.sqrt(high / low) - 1 > _PRECISE


def grouped_steps(result: RunResult) -> Floats:
    """Return the means of four steady steps in a row; the steps themselves where they are few.

    Workers of a DataLoader deliver batches together: one long step, then short ones.
    """
    steady = steady_steps(result)
    groups = len(steady) // _GROUP
    if groups < _GROUP:
        return steady
    means: Floats = steady[: groups * _GROUP].reshape(groups, _GROUP).mean(axis=1)
    return means


def steady_steps(result: RunResult) -> Floats:
    """Return the lengths of a run's steps in ns, without warm-up and compilation.

    If each compiled something, none is steady, and all but the warm-up are returned.
    """
    lengths, steady = np.array(result.step_ns), _is_steady(result)
    return lengths[steady] if steady.any() else lengths[_warm_up(result) :]


def _is_steady(result: RunResult) -> Mask:
    steady = ~np.array(result.compiling, bool)
    steady[: _warm_up(result)] = False
    return steady


def _warm_up(result: RunResult) -> int:
    return min(_WARM_UP, len(result.step_ns) // 3)


def median_ns(result: RunResult, *, by_step: bool) -> float:
    """Return the median step of a run, or its whole length."""
    return float(np.median(grouped_steps(result))) if by_step else float(result.wall_ns)


def timed_runs(runs: Sequence[TrialRun], *variants: Variant) -> list[TrialRun]:
    """Choose the usable runs of some variants that were timed."""
    return [run for run in runs if run.mode == "time" and run.usable and run.variant in variants]


def why_incomparable(runs: Sequence[TrialRun], variant: Variant) -> str | None:
    """Return why times with and without a change cannot be compared; None if they can."""
    without = {_kind(run.result) for run in timed_runs(runs, BASELINE)}
    for result in (run.result for run in timed_runs(runs, variant)):
        if _kind(result) not in without:
            return (
                f"steps end with {result.steps_of or 'nothing that was seen'}, and without the "
                "change with something else: their times say nothing"
            )
        if len(result.step_ns) and not _is_steady(result).any():
            return (
                f"each of {len(result.step_ns)} steps compiled something; let the script do more "
                "(--steps)"
            )
    return None


def _kind(result: RunResult) -> str:
    """Return what ends steps: pyprof.step(), an optimizer, a call, or nothing."""
    return result.steps_of.partition(" ")[0]


def has_steps(runs: Sequence[TrialRun], *variants: Variant) -> bool:
    """Whether steps were seen in all timed runs of some variants."""
    return all(len(run.result.step_ns) for run in timed_runs(runs, *variants))


def _log_ns(run: TrialRun, *, by_step: bool) -> float:
    return math.log(max(median_ns(run.result, by_step=by_step), 1.0))


def _variance_of_median(run: TrialRun) -> float:
    """Return the variance that the steps of a run show, of its logarithm."""
    lengths = grouped_steps(run.result)
    count = len(lengths)
    if count < 2:  # noqa: PLR2004 - one step shows no spread
        return 0.0
    logs = np.log(np.maximum(lengths, 1.0))
    index = np.arange(count)
    estimated = noise.estimates(np.zeros(count, np.int64), index, logs, (1, count), 0.0)
    return float(estimated.variance[0]) / count * math.pi / 2


def _blocks(runs: Sequence[TrialRun], variant: Variant) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the positions of runs with the change, and of the baselines before and after them."""
    timed = [index for index, run in enumerate(runs) if run.mode == "time" and run.usable]
    baselines = [index for index in timed if runs[index].variant == BASELINE]
    for before, after in pairwise([*baselines, len(runs)]):
        ours = [p for p in timed if before < p < after and runs[p].variant == variant]
        if ours:
            yield ours, [before] + ([after] if after < len(runs) else [])


def timing(runs: Sequence[TrialRun], variant: Variant) -> Timing | None:
    """Compare a change with the baselines around it; None without two runs to show the noise."""
    blocks = list(_blocks(runs, variant))
    if not blocks:
        return None
    by_step = has_steps(runs, BASELINE, variant)
    compared = dict.fromkeys(index for ours, around in blocks for index in (*ours, *around))
    log = {index: _log_ns(runs[index], by_step=by_step) for index in compared}
    differences = [
        float(np.mean([log[index] for index in ours]) - np.mean([log[index] for index in around]))
        for ours, around in blocks
    ]
    mid = float(np.mean(differences))
    squares, freedom = _pairs(runs, by_step=by_step, variant=variant)
    squares += float(np.sum((np.array(differences) - mid) ** 2))
    freedom += len(differences) - 1
    if not freedom:
        return None
    inside = float(np.mean([_variance_of_median(runs[i]) for i in compared])) if by_step else 0.0
    variance = max(squares / freedom, inside, _MIN_SPREAD**2)
    ours_count = sum(len(ours) for ours, _ in blocks)
    around_count = len({index for _, around in blocks for index in around})
    error = math.sqrt(variance * (1 / ours_count + 1 / around_count))
    half = float(student_t.quantile(noise.LEVEL, np.array(freedom))) * error
    ratio = TimeRatio(*(math.exp(min(mid + part, 700.0)) for part in (-half, 0.0, half)))
    return Timing(ratio, math.sqrt(variance))


def _pairs(runs: Sequence[TrialRun], *, by_step: bool, variant: Variant) -> tuple[float, float]:
    """Return the sum of squared differences between neighbouring runs, and their number.

    Neighbours are consecutive baselines, and the two runs of a change between them.
    """
    squares, count = 0.0, 0.0
    for wanted in dict.fromkeys((BASELINE, variant)):
        logs = [_log_ns(run, by_step=by_step) for run in timed_runs(runs, wanted)]
        steps = pairwise(logs) if wanted == BASELINE else zip(logs[::2], logs[1::2], strict=False)
        for a, b in steps:
            squares += (a - b) ** 2 / 2
            count += 1
    return squares, count
