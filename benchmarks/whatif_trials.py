"""Outcomes of `pyprof whatif` in folders of `pyprof try`: kernels, and steps as they were timed.

A pair is the capture of the baseline and that of a change which one rule predicts. Steps are
compared by the ratio that the trial measured without a profiler.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from whatif_outcome import Outcome

from pyprof.analysis.whatif import summarise_whatif
from pyprof.answers.whatif_answer import PredictedChange
from pyprof.inputs import source, trial_folder
from pyprof.trial.change import changes, parse


class StepOutcome(NamedTuple):
    """The time of a step with a change by that without it, as predicted and as measured."""

    what: str
    expected: float
    low: float
    measured: float
    high: float

    @property
    def line(self) -> str:
        """Format the error of the prediction."""
        inside = "inside" if self.low <= self.expected <= self.high else "outside of"
        return (
            f"{self.what}: a step {self.expected:.2f}x predicted, {self.measured:.2f}x measured, "
            f"error {self.expected / self.measured - 1:+.1%}, {inside} "
            f"{self.low:.2f}x to {self.high:.2f}x"
        )


def outcomes(folder: Path) -> Iterator[Outcome | StepOutcome | str]:
    """Yield the outcome of each change of a trial that a rule predicts, or why it is unknown.

    Raises OSError, or ValueError, if the folder has no try.json.
    """
    trial = json.loads((folder / trial_folder.ANSWER).read_text("utf-8"))
    before = source.load(str(_capture(folder, trial["baseline"])))
    for tried in trial["changes"]:
        text = tried["change"]
        what, is_one = f"{text} of {trial['script']}", " + " not in text
        option = changes()[parse(text).name].predicted_by if is_one else ""
        if not option:
            yield f"{what}: no rule predicts it"
            continue
        if not tried["capture"]:
            yield f"{what}: {tried['verdict']}, it was not recorded"
            continue
        answer = summarise_whatif(before, (option,))
        if not answer.changes:
            yield f"{what}: {'; '.join(each.why for each in answer.refused)}"
            continue
        after = source.load(str(_capture(folder, tried)), host=False).table
        yield from _compared(what, trial["script"], answer.changes[0], tried, after.duration_ns)


def _compared(
    what: str,
    program: str,
    given: PredictedChange,
    tried: dict[str, Any],
    after_ns: Any,  # noqa: ANN401 - an array
) -> Iterator[Outcome | StepOutcome | str]:
    kernels, step, ratio = given.kernels_ns, given.step_ns, tried["time_ratio"]
    yield Outcome(given.change, what, program, kernels.expected, float(after_ns.sum()), None)
    if step is None:
        yield f"{what}: {given.step_why}"
    elif ratio is not None:
        yield StepOutcome(what, step.expected / step.now, ratio["low"], ratio["mid"], ratio["high"])


def _capture(folder: Path, recorded: dict[str, Any]) -> Path:
    """Return a capture's path, also if the folder was moved."""
    return folder / Path(recorded["capture"] or "").name
