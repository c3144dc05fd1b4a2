"""A trial from its first run to its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.analysis.trial import verdict
from pyprof.analysis.trial.proposals import proposals, together
from pyprof.analysis.trial.timing import timing
from pyprof.answers.try_answer import Try
from pyprof.errors import PyprofError
from pyprof.process import signals
from pyprof.trial.change import Chosen, changes
from pyprof.trial.experiment import BASELINE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.diff_answer import Diff
    from pyprof.trial.experiment import Trial, Variant


def perform_trial(
    trial: Trial, chosen: Sequence[Chosen], rounds: int, *, combine: bool = False
) -> Try:
    """Run a trial and return its answer; if interrupted, the answer so far.

    Without chosen changes, tries those that the advice on the script proposes; then, as with
    `combine`, a combination of those that helped. Raises PyprofError if the script fails without a
    change.
    """
    variants: list[Variant] = [(each,) for each in chosen]
    try:
        _run_all(trial, variants, rounds, combine=combine)
        complete = True
    except (KeyboardInterrupt, signals.Ended):
        if not any(run.variant == BASELINE and run.usable for run in trial.runs):
            raise
        complete = False
    return _make_answer(trial, variants, complete=complete)


def _run_all(trial: Trial, variants: list[Variant], rounds: int, *, combine: bool) -> None:
    """Do a trial's runs; add proposed changes, and those that helped combined, to `variants`."""
    proposed = not variants
    if proposed:
        trial.baseline()
        variants += _find_proposed(trial)
    _measure(trial, variants, rounds)
    if proposed or combine:
        joined = together({each: verdict.judge(trial.runs, each) for each in variants})
        if joined is not None:
            variants.append(joined)
            _measure(trial, [joined], rounds)
    if not proposed:
        trial.perform(BASELINE, "profile")
    for variant in variants:
        if trial.is_usable(variant):
            trial.perform(variant, "profile")


def _find_proposed(trial: Trial) -> list[Variant]:
    """Return the changes that the advice on a profiled run proposes."""
    result = trial.perform(BASELINE, "profile").result
    if not result.capture:
        why = result.error or "it recorded nothing"
        raise PyprofError(
            f"the run that is profiled to find changes failed: {why}; name the changes with "
            "--change"
        )
    advice = _advice_by_rule(result.capture)
    trial.not_tried = tuple(text for rule, text in advice.items() if not proposals([rule]))
    return [(each,) for each in proposals(advice)]


def _measure(trial: Trial, variants: Sequence[Variant], rounds: int) -> None:
    def undecided(variant: Variant) -> bool:
        timed = timing(trial.runs, variant)
        return timed is not None and timed.undecided

    trial.measure(variants, rounds, undecided)
    for variant in variants:
        random = any(changes()[chosen.name].other_random_numbers for chosen in variant)
        if random and trial.is_usable(variant):
            trial.perform(variant, "losses")


def _advice_by_rule(capture: str) -> Mapping[str, str]:
    """Return the advice on a capture by rule, the largest gain first."""
    from pyprof.analysis.summary import composition, overview  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs import source  # noqa: PLC0415 - as above

    sums = overview.summarise(source.load(capture))
    advice = [each for each in composition.summary(sums).advice if not each.once]
    lines = [next((e.line for e in each.evidence if e.line), "") for each in advice]
    return {
        each.rule: f"{each.title} ({line})" if line else each.title
        for each, line in zip(advice, lines, strict=True)
    }


def _make_answer(trial: Trial, variants: Sequence[Variant], *, complete: bool) -> Try:
    captures: dict[Variant, str] = {
        run.variant: run.result.capture
        for run in trial.runs
        if run.mode == "profile" and run.result.capture
    }
    before, tried = captures.get(BASELINE), []
    for variant in variants:
        if not any(run.variant == variant for run in trial.runs):
            continue
        change, after = verdict.judge(trial.runs, variant), captures.get(variant)
        timed = timing(trial.runs, variant) if change.time_ratio else None
        diff = _compare_ops(before, after)
        kernels = verdict.kernel_changes(diff, timed.spread if timed else 0.0) if diff else ()
        predicted = _predict_ratio(before, variant)
        tried.append(replace(change, predicted_ratio=predicted, kernels=kernels, capture=after))
    return Try(
        script=" ".join(trial.target.command()),
        folder=str(trial.folder),
        complete=complete,
        baseline=verdict.baseline(trial.runs, before),
        changes=tuple(tried),
        not_tried=trial.not_tried,
    )


def _predict_ratio(capture: str | None, variant: Variant) -> float | None:
    """Return the ratio of kernel times with and without a change, as predicted by `whatif`."""
    option = changes()[variant[0].name].predicted_by if len(variant) == 1 else ""
    if capture is None or not option:
        return None
    from pyprof.analysis.whatif import summarise_whatif  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs import source  # noqa: PLC0415 - as above

    try:
        predicted = summarise_whatif(source.load(capture), (option,)).changes
    except PyprofError:
        return None
    times = [each.kernels_ns for each in predicted]
    return times[0].expected / times[0].now if times and times[0].now else None


def _compare_ops(before: str | None, after: str | None) -> Diff | None:
    """Compare the ops of two captures; None if one is missing, or cannot be used."""
    if before is None or after is None:
        return None
    from pyprof.cli.capture_options import Captures  # noqa: PLC0415 - it loads Arrow
    from pyprof.commands.diff import compare_captures  # noqa: PLC0415 - it loads Arrow
    from pyprof.inputs.executor import open_executor  # noqa: PLC0415 - as above

    try:
        with open_executor(strict=True, quiet=True) as executor:
            captures = Captures((before, after), executor, quiet=True)
            return compare_captures(captures, ("op",), None)[0]
    except PyprofError:
        return None
