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

    def __init__(self, fails: Variant = _NONE) -> None:
        self.requests: list[RunRequest] = []
        self.environments: list[Mapping[str, str]] = []
        self._fails = fails

    def __call__(
        self, request: RunRequest, _: object, environment: Mapping[str, str], __: object
    ) -> RunResult:
        self.requests.append(request)
        self.environments.append(environment)
        return RunResult(code=int(request.changes == self._fails))


def _trial(folder: Path, monkeypatch: pytest.MonkeyPatch, performed: Performed) -> Trial:
    monkeypatch.setattr(processes, "perform", performed)
    trial = Trial(
        target=Target("a.py"), folder=folder, ranks=Ranks(0, 1, ""), steps=5, seed=True,
        report=lambda _: None,
    )  # fmt: skip
    trial.begin()
    return trial


def test_each_change_runs_twice_between_two_baselines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = _trial(tmp_path, monkeypatch, Performed())
    trial.measure([A, B], 2, lambda _: False)
    order = [BASELINE, A, A, BASELINE, B, B, BASELINE, B, B, BASELINE, A, A, BASELINE]
    assert [run.variant for run in trial.runs] == order
    assert len(lines_of(tmp_path / "runs.jsonl")) == len(order)


def test_more_rounds_are_run_if_the_result_is_unclear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = _trial(tmp_path, monkeypatch, Performed())
    trial.measure([A, B], 1, lambda variant: variant == B)
    assert [run.variant for run in trial.runs].count(A) == 2
    assert [run.variant for run in trial.runs].count(B) == 6


def test_a_change_that_fails_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = _trial(tmp_path, monkeypatch, Performed(fails=A))
    trial.measure([A, B], 1, lambda _: False)
    assert [run.variant for run in trial.runs] == [BASELINE, A, B, B, BASELINE]
    assert not trial.is_usable(A)


def test_captures_of_changes_with_long_names_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    performed = Performed()
    trial = _trial(tmp_path, monkeypatch, performed)
    for name in ("a", "b"):
        trial.perform((Chosen("patch", f"{'long/' * 20}{name}.py"),), "profile")
    assert len({request.capture for request in performed.requests}) == 2


@pytest.mark.parametrize(("own", "given"), [(None, "0"), ("7", None)])
def test_hash_seeds_are_fixed_unless_the_user_set_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, given: str | None
) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    performed = Performed()
    _trial(tmp_path, monkeypatch, performed).perform(BASELINE, "time")
    assert performed.environments[0].get("PYTHONHASHSEED") == given


def test_only_the_first_rank_makes_the_folder(tmp_path: Path) -> None:
    """Others would take what another rank has made for the user's files."""
    trials = [
        Trial(target=Target("a.py"), folder=tmp_path / "out", ranks=Ranks(rank, 2, "job"), steps=0,
              seed=True, report=lambda _: None)
        for rank in (1, 0)
    ]  # fmt: skip
    for trial in trials:
        trial.begin()
    assert (tmp_path / "out" / "runs").is_dir()
