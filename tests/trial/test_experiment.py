"""The order of runs in a trial."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pyprof.capture.script import Target
from pyprof.trial import processes
from pyprof.trial.change import Chosen
from pyprof.trial.experiment import BASELINE, Trial, Variant
from pyprof.trial.ranks import Ranks
from pyprof.trial.run_files import RunRequest, RunResult
from tests.trial.built import lines_of

A: Variant = (Chosen("threads", "1"),)
B: Variant = (Chosen("threads", "2"),)
_NONE: Variant = (Chosen("none"),)


class Performed:
    """Takes the place of the processes of runs: requests and environments, in their order."""

    def __init__(self) -> None:
        self.requests: list[RunRequest] = []
        self.environments: list[Mapping[str, str]] = []
        self.fails: Variant = _NONE

    def __call__(
        self, request: RunRequest, _: object, environment: Mapping[str, str], __: object
    ) -> RunResult:
        self.requests.append(request)
        self.environments.append(environment)
        return RunResult(code=int(request.changes == self.fails), step_ns=[1.0] * 20)


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> Performed:
    performed = Performed()
    monkeypatch.setattr(processes, "perform", performed)
    return performed


@pytest.fixture
def trial(tmp_path: Path, performed: Performed) -> Trial:
    del performed
    return _begun(tmp_path, Ranks(0, 1, ""))


def _begun(folder: Path, ranks: Ranks) -> Trial:
    target = Target("a.py")
    trial = Trial(target=target, folder=folder, ranks=ranks, steps=5, seed=True, report=print)
    trial.begin()
    return trial


def test_each_change_runs_twice_between_two_baselines(trial: Trial) -> None:
    trial.measure([A, B], 2, lambda _: False)
    order = [BASELINE, A, A, BASELINE, B, B, BASELINE, B, B, BASELINE, A, A, BASELINE]
    assert [run.variant for run in trial.runs] == order
    assert len(lines_of(trial.folder / "runs.jsonl")) == len(order)


def test_more_rounds_are_run_if_the_result_is_unclear(trial: Trial) -> None:
    trial.measure([A, B], 1, lambda variant: variant == B)
    assert [run.variant for run in trial.runs].count(A) == 2
    assert [run.variant for run in trial.runs].count(B) == 6


def test_a_change_that_fails_is_not_run_again(trial: Trial, performed: Performed) -> None:
    performed.fails = A
    trial.measure([A, B], 1, lambda _: False)
    assert [run.variant for run in trial.runs] == [BASELINE, A, B, B, BASELINE]
    assert not trial.is_usable(A)


def test_captures_of_changes_with_long_names_are_kept_apart(
    trial: Trial, performed: Performed
) -> None:
    for name in ("a", "b"):
        trial.perform((Chosen("patch", f"{'long/' * 20}{name}.py"),), "profile")
    assert len({request.capture for request in performed.requests}) == 2


def test_a_profiled_run_ends_with_the_last_step_that_it_records(
    trial: Trial, performed: Performed
) -> None:
    trial.perform(BASELINE, "time")
    trial.perform(BASELINE, "profile")
    request = performed.requests[-1]
    assert request.steps == sum(map(int, request.recorded_steps.split(",")))


@pytest.mark.parametrize(("own", "given"), [(None, "0"), ("7", None)])
def test_hash_seeds_are_fixed_unless_the_user_set_one(
    own: str | None,
    given: str | None,
    trial: Trial,
    performed: Performed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    trial.perform(BASELINE, "time")
    assert performed.environments[0].get("PYTHONHASHSEED") == given


def test_only_the_first_rank_makes_the_folder(tmp_path: Path) -> None:
    """Others would take what another rank has made for the user's files."""
    for rank in (1, 0):
        _begun(tmp_path / "out", Ranks(rank, 2, "job"))
    assert (tmp_path / "out" / "runs").is_dir()
