"""The outcome of each change of a trial: faster, slower, no difference, refused or failed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.trial.losses import LossComparison, compare_losses
from pyprof.analysis.trial.timing import (
    BUSY_SPREAD,
    Timing,
    has_steps,
    median_ns,
    timed_runs,
    timing,
    why_incomparable,
)
from pyprof.answers.try_answer import KernelChange, TrialBaseline, TriedChange
from pyprof.trial.experiment import BASELINE, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.diff_answer import Diff
    from pyprof.answers.try_answer import Verdict
    from pyprof.trial.experiment import TrialRun, Variant
    from pyprof.trial.run_files import RunResult

_MIN_CHANGE = 0.01
"""A smaller change helps nobody, and machines do not repeat times that well."""
_MAX_KERNELS = 5
_MIN_KERNEL_CHANGE = 0.1
_NOISE_FACTOR = 3 * math.sqrt(2)
"""Multiple of the runs' spread by which a run with a change may differ by chance."""


def _peak(results: Sequence[RunResult]) -> float | None:
    peaks = [r.peak_memory_bytes for r in results if r.peak_memory_bytes is not None]
    return float(np.median(peaks)) if peaks else None


def baseline(runs: Sequence[TrialRun], capture: str | None = None) -> TrialBaseline:
    """Sum up the runs without a change (at least one); `capture` is that of a profiled one."""
    results = [run.result for run in timed_runs(runs, BASELINE)]
    by_step = has_steps(runs, BASELINE)
    times = np.array([median_ns(result, by_step=by_step) for result in results])
    peak = _peak(results)
    several = len(results) > 1
    spread = float(np.std(np.log(times), ddof=1)) if several else None
    noise = compare_losses([r.losses for r in results], [r.losses for r in results[-1:]])
    steps_of = results[0].steps_of if by_step else None
    return TrialBaseline(
        device=results[0].device,
        unit="step" if steps_of else "run",
        steps_of=steps_of,
        step_count=len(results[0].step_ns) if by_step else 0,
        run_count=len(results),
        time_ns=float(np.median(times)),
        spread_share=spread,
        busy=spread is not None and spread > BUSY_SPREAD,
        peak_memory_bytes=None if peak is None else int(peak),
        loss_count=noise.check.count,
        loss_noise=noise.noise if several and noise.check.count else None,
        capture=capture,
    )


def judge(runs: Sequence[TrialRun], variant: Variant) -> TriedChange:
    """Judge a change by all runs of the trial; their captures add the rest."""
    results, baselines = (
        [run.result for run in timed_runs(runs, each)] for each in (variant, BASELINE)
    )
    checked = [r.result for r in runs if r.variant == variant and r.mode == "losses" and r.usable]
    loss = compare_losses([r.losses for r in baselines], [r.losses for r in checked or results])
    timed = timing(runs, variant)
    verdict, why = _verdict(runs, variant, timed, loss)
    peak, before = _peak(results), _peak(baselines)
    by_step = has_steps(runs, BASELINE, variant)
    times = [median_ns(result, by_step=by_step) for result in results]
    all_results = [run.result for run in runs if run.variant == variant]
    return TriedChange(
        change=label(variant),
        verdict=verdict,
        why=why,
        time_ratio=timed.ratio if timed and verdict not in ("refused", "failed") else None,
        predicted_ratio=None,
        time_ns=float(np.median(times)) if times else None,
        peak_memory_ratio=peak / before if peak and before else None,
        loss=loss.check,
        notes=tuple(dict.fromkeys(note for result in all_results for note in result.notes)),
        kernels=(),
        capture=None,
        code="\n".join(chosen.code for chosen in variant),
    )


def _verdict(
    runs: Sequence[TrialRun], variant: Variant, timed: Timing | None, loss: LossComparison
) -> tuple[Verdict, str]:
    outcome = _why_prevented(runs, variant, loss)
    if outcome is not None:
        return outcome
    if timed is None:
        return "failed", "it was not run twice"
    ratio = timed.ratio
    if ratio.low <= 1 <= ratio.high:
        why = "no difference that this machine can show"
        if timed.spread > BUSY_SPREAD:
            why += f": it is busy, runs of the same code vary by {100 * timed.spread:.0f} %"
        return "no difference", why
    if abs(ratio.mid - 1) < _MIN_CHANGE:
        return "no difference", f"less than {100 * _MIN_CHANGE:.0f} %"
    return ("faster" if ratio.mid < 1 else "slower"), ""


def _why_prevented(
    runs: Sequence[TrialRun], variant: Variant, loss: LossComparison
) -> tuple[Verdict, str] | None:
    """Return why a change was refused or failed; None if it was neither."""
    results = [run.result for run in runs if run.variant == variant and run.mode != "profile"]
    refused = {k: why for r in results for k, why in {**r.no_effect, **r.refused}.items()}
    if refused:
        alone = len(variant) == 1
        return "refused", "; ".join(why if alone else f"{k}: {why}" for k, why in refused.items())
    failed = next((result.error for result in results if result.code), None)
    if failed is not None:
        return "failed", failed
    if loss.first_not_finite is not None:
        return "failed", f"the loss of backward pass {loss.first_not_finite + 1} is not finite"
    why = why_incomparable(runs, variant)
    return None if why is None else ("failed", why)


def kernel_changes(diff: Diff, spread: float) -> tuple[KernelChange, ...]:
    """Return the ops that changed most, by more than the spread of runs explains."""
    noise = max(_MIN_KERNEL_CHANGE, _NOISE_FACTOR * spread)
    changed = [  # ops that are new or gone have one time
        each
        for each in diff.differing
        if not each.a_ns or not each.b_ns or abs(math.log(each.b_ns / each.a_ns)) > noise
    ]
    return tuple(
        KernelChange(each.key["op"], each.status, each.a_ns, each.b_ns)
        for each in changed[:_MAX_KERNELS]
    )
