"""The outcome of each change of a trial: faster, slower, no difference, refused or failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

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
from pyprof.answers.try_answer import (
    KernelChange,
    LossCheck,
    TimeRatio,
    TrialBaseline,
    TriedChange,
)
from pyprof.trial.experiment import BASELINE, label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.diff_answer import Change as OpChange
    from pyprof.trial.experiment import TrialRun, Variant
    from pyprof.trial.run_files import RunResult

Verdict: TypeAlias = Literal["faster", "slower", "no difference", "refused", "failed"]
_MIN_CHANGE = 0.01
"""A smaller change helps nobody, and machines do not repeat times that well."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The outcome of a change."""

    variant: Variant
    verdict: Verdict
    why: str
    """The reason for a refusal, a failure, or no difference; "" for other verdicts."""
    timing: Timing | None
    peak_memory_ratio: float | None
    loss: LossComparison
    notes: tuple[str, ...]
    step_ns: float | None
    """Median step with the change, or the whole run where there are no steps."""

    @property
    def helped(self) -> bool:
        """Whether the script is faster with it; its losses are finite, but may differ."""
        return self.verdict == "faster"


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
        loss_count=noise.count,
        loss_noise=noise.noise if several and noise.count else None,
        capture=capture,
    )


def judge(runs: Sequence[TrialRun], variant: Variant) -> Finding:
    """Judge a change by all runs of the trial."""
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
    return Finding(
        variant=variant,
        verdict=verdict,
        why=why,
        timing=timed if verdict not in ("refused", "failed") else None,
        peak_memory_ratio=peak / before if peak and before else None,
        loss=loss,
        notes=tuple(dict.fromkeys(note for result in all_results for note in result.notes)),
        step_ns=float(np.median(times)) if times else None,
    )


def _verdict(
    runs: Sequence[TrialRun], variant: Variant, timed: Timing | None, loss: LossComparison
) -> tuple[Verdict, str]:
    outcome = _prevented(runs, variant, loss)
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


def _prevented(
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


def tried_change(
    finding: Finding,
    *,
    captures: Mapping[Variant, str],
    kernels: Sequence[OpChange],
    predicted: float | None,
) -> TriedChange:
    """Build the part of the answer about a change."""
    ratio, loss = finding.timing and finding.timing.ratio, finding.loss
    return TriedChange(
        change=label(finding.variant),
        verdict=finding.verdict,
        why=finding.why,
        time_ratio=TimeRatio(ratio.low, ratio.mid, ratio.high) if ratio else None,
        predicted_ratio=predicted,
        time_ns=finding.step_ns,
        peak_memory_ratio=finding.peak_memory_ratio,
        loss=LossCheck(
            count=loss.count,
            within_noise=loss.within_noise,
            largest_relative_difference=loss.largest_relative_difference,
            last=loss.last[0] if loss.last else None,
            last_baseline=loss.last[1] if loss.last else None,
        ),
        notes=finding.notes,
        kernels=tuple(
            KernelChange(change.key["op"], change.status, change.a_ns, change.b_ns)
            for change in kernels
        ),
        capture=captures.get(finding.variant),
        code="\n".join(chosen.code for chosen in finding.variant),
    )
