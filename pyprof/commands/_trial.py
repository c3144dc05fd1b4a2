"""A trial from its first run to its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.analysis.trial import verdict
from pyprof.analysis.trial.proposals import proposals
from pyprof.analysis.trial.timing import timing
from pyprof.answers.try_answer import TriedChange, Try, trial_baseline, tried_change
from pyprof.errors import PyprofError
from pyprof.process import signals
from pyprof.trial.change import Chosen, changes
from pyprof.trial.experiment import BASELINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.diff.compare import Change as OpChange
    from pyprof.trial.experiment import Trial, Variant

_KERNELS = 5
_LEAST_TOGETHER = 2


def perform_trial(trial: Trial, chosen: Sequence[Chosen], rounds: int) -> Try:
    """Run a trial, and return what came of it; what there is if it is interrupted.

    Without changes chosen, those are tried that the advice on the script proposes, and then those
    that helped together. Raises PyprofError if the script fails without a change.
    """
    variants: list[Variant] = [(each,) for each in chosen]
    try:
        _run_all(trial, variants, rounds)
        complete = True
    except (KeyboardInterrupt, signals.Ended):
        if not any(run.variant == BASELINE and run.usable for run in trial.runs):
            raise
        complete = False
    return _answer(trial, variants, complete=complete)


def _run_all(trial: Trial, variants: list[Variant], rounds: int) -> None:
    """Do the runs of a trial; adds to `variants` what is proposed."""
    proposed = not variants
    if proposed:
        trial.baseline()
        capture = trial.perform(BASELINE, "profile").result.capture
        variants += [(each,) for each in proposals(_advice_rules(capture))]
    _measure(trial, variants, rounds)
    helped = [v for v in variants if verdict.judge(trial.runs, v).helped]
    if proposed and len(helped) >= _LEAST_TOGETHER:
        together = tuple(chosen for variant in helped for chosen in variant)
        variants.append(together)
        _measure(trial, [together], rounds)
    if not proposed:
        trial.perform(BASELINE, "profile")
    for variant in variants:
        if trial.is_usable(variant):
            trial.perform(variant, "profile")


def _measure(trial: Trial, variants: Sequence[Variant], rounds: int) -> None:
    def undecided(variant: Variant) -> bool:
        timed = timing(trial.runs, variant)
        return timed is not None and timed.undecided

    trial.measure(variants, rounds, undecided)
    for variant in variants:
        random = any(changes()[chosen.name].other_random_numbers for chosen in variant)
        if random and trial.is_usable(variant):
            trial.perform(variant, "losses")


def _advice_rules(capture: str) -> list[str]:
    """Return the names of the rules that have advice on a capture, the largest gain first."""
    from pyprof.analysis.summary import overview  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs import source  # noqa: PLC0415 - as above

    if not capture:
        return []
    sums = overview.summarise(source.load(capture))
    return [advice.rule for advice in overview.summary(sums).advice if not advice.once]


def _answer(trial: Trial, variants: Sequence[Variant], *, complete: bool) -> Try:
    captures: dict[Variant, str] = {
        run.variant: run.result.capture
        for run in trial.runs
        if run.mode == "profile" and run.result.capture
    }
    tried = [each for each in variants if any(run.variant == each for run in trial.runs)]
    return Try(
        script=" ".join(trial.target.command()),
        folder=str(trial.folder),
        complete=complete,
        baseline=trial_baseline(verdict.baseline(trial.runs), captures.get(BASELINE)),
        changes=tuple(_tried(trial, variant, captures) for variant in tried),
    )


def _tried(trial: Trial, variant: Variant, captures: Mapping[Variant, str]) -> TriedChange:
    return tried_change(
        verdict.judge(trial.runs, variant),
        captures=captures,
        kernels=_kernel_changes(captures.get(BASELINE), captures.get(variant)),
        predicted=None,
    )


def _kernel_changes(before: str | None, after: str | None) -> Sequence[OpChange]:
    """Return the ops that changed most between two captures; none where one is missing."""
    if before is None or after is None:
        return ()
    from pyprof.commands.diff import compare_captures  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs.executor import open_executor  # noqa: PLC0415 - as above
    from pyprof.options import Captures  # noqa: PLC0415 - as above

    try:
        with open_executor(1, None, strict=True, quiet=True) as executor:
            captures = Captures((before, after), executor, quiet=True)
            comparison, _ = compare_captures(captures, ("op",), None)
    except PyprofError:
        return ()
    return comparison.differing[:_KERNELS]
