"""The verdict on a change."""

import math
from pathlib import Path

import pytest

from pyprof.analysis.diff.compare import compare
from pyprof.analysis.diff.side import Side, summarise_side
from pyprof.analysis.trial.verdict import baseline, judge, kernel_changes
from pyprof.answers.try_answer import KernelChange
from pyprof.inputs.source import load
from pyprof.trial.experiment import BASELINE, TrialRun
from pyprof.trial.run_files import RunResult
from tests.trial.built import CHANGE, in_turn, made, runs

STEPS = [10.0, 10.1, 9.9, 10.0, 10.1, 9.9] * 3


def _scaled(factor: float) -> list[float]:
    return [factor * each for each in STEPS]


def _tried(factor: float = 1, **of_change: object) -> list[TrialRun]:
    """Run a change in turn with the baseline; its runs' results have these values."""
    tried = in_turn([STEPS] * 3, [_scaled(factor)] * 4)
    for run in tried:
        run.result.losses, run.result.peak_memory_bytes = [1.0, 0.9], 200
        for name, value in of_change.items() if run.variant == CHANGE else ():
            setattr(run.result, name, value)
    return tried


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(0.5, "faster"), (1.5, "slower"), (1.0, "no difference"), (0.995, "no difference")],
)
def test_verdict_follows_from_the_times(factor: float, verdict: str) -> None:
    found = judge(_tried(factor), CHANGE)
    assert found.verdict == verdict
    assert bool(found.why) == (verdict == "no difference")


def test_a_busy_machine_is_reported() -> None:
    busy = [_scaled(factor) for factor in (1, 3, 1.5)]
    found = judge(in_turn(busy, [_scaled(factor) for factor in (2, 1, 3, 2)]), CHANGE)
    assert found.verdict == "no difference"
    assert "it is busy, runs of the same code vary by" in found.why
    assert baseline(in_turn(busy, [STEPS] * 4)).busy


_BASELINE = runs((BASELINE, STEPS))
PREVENTED: dict[str, tuple[list[TrialRun], str, str]] = {
    "refused": ([*_BASELINE, made(CHANGE, 2, RunResult(refused={"threads=1": "one already"}))],
                "refused", "one already"),
    "failed": ([*_BASELINE, made(CHANGE, 2, RunResult(code=1, error="RuntimeError: no"))],
               "failed", "RuntimeError: no"),
    "all of its steps compile": (
        _tried(900, compiling=[True] * len(STEPS)), "failed",
        "each of 18 steps compiled something; let the script do more (--steps)"),
    "its steps end differently, as if a GradScaler skips all steps of the optimizer": (
        _tried(step_ns=[], steps_of="", compiling=[], wall_ns=1), "failed",
        "steps end with nothing that was seen"),
    "a single run, as in an interrupted trial": (
        runs((BASELINE, STEPS), (CHANGE, _scaled(0.5))), "failed", "it was not run twice"),
    "faster, with a loss that is nan": (
        _tried(0.5, losses=[1.0, math.nan]), "failed",
        "the loss of backward pass 2 is not finite"),
}  # fmt: skip


@pytest.mark.parametrize(("tried", "verdict", "why"), PREVENTED.values(), ids=PREVENTED)
def test_a_change_that_was_prevented_has_no_times(
    tried: list[TrialRun], verdict: str, why: str
) -> None:
    found = judge(tried, CHANGE)
    assert (found.verdict, found.time_ratio) == (verdict, None)
    assert found.why.startswith(why)


def test_an_optimizer_of_another_class_ends_steps_as_well() -> None:
    assert judge(_tried(0.5, steps_of="optimizer 2 of AdamW"), CHANGE).verdict == "faster"


def test_losses_of_a_run_with_equal_random_numbers_take_precedence() -> None:
    tried = _tried(losses=[1.0, 0.8])
    assert judge(tried, CHANGE).loss.within_noise is False
    checked = RunResult(step_ns=[1e6] * 9, losses=[1.0, 0.9])
    assert judge([*tried, made(CHANGE, 8, checked, "losses")], CHANGE).loss.within_noise


def test_peak_memory_is_a_ratio_of_medians() -> None:
    assert judge(_tried(peak_memory_bytes=300), CHANGE).peak_memory_ratio == 1.5


def test_baseline_says_what_was_timed() -> None:
    found = baseline(_tried())
    assert (found.steps_of, found.step_count, found.run_count) == ("optimizer 1 of SGD", 18, 3)
    assert found.time_ns == pytest.approx(10e6, rel=0.02)
    assert found.spread_share == 0
    assert not found.busy


def test_a_changed_op_has_a_name_and_the_times_of_the_runs_that_have_it(tmp_path: Path) -> None:
    def side(op: str, ns: int) -> Side:
        path = tmp_path / f"{op}.dict"
        path.write_text(f"{{'kShortName': '{op}', 'kLongName': '{op}', 'kDuration': {ns}}}")
        return summarise_side(load(str(path)), ("op",), None)

    assert kernel_changes(compare(side("mm", 7), side("add", 5)), 0.0) == (
        KernelChange("mm", "gone", 7, None),
        KernelChange("add", "new", None, 5),
    )
