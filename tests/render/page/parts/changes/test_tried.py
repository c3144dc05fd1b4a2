"""The answer of a trial, on the page of its captures."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.trial.verdict import baseline, judge
from pyprof.answers.try_answer import TimeRatio, Try, from_json
from pyprof.render.page.parts.changes import tried
from tests.analysis.captured import capture
from tests.render.page.shown_parts import shown, sums_of
from tests.trial.built import CHANGE, in_turn


@pytest.fixture
def trial(tmp_path: Path) -> Try:
    """Write a trial of a change that halves the time, and two captures of it, into a folder."""
    files = {name: str(capture(tmp_path / f"{name}.sqlite", steps=2)) for name in ("a", "b")}
    runs = in_turn([[10.0] * 9, [10.1] * 9], [[5.0] * 9, [5.0] * 9])
    changed = replace(judge(runs, CHANGE), capture=files["b"], predicted_ratio=0.6)
    answer = Try(
        script="/home/me/train.py", folder="a.try", complete=True,
        baseline=baseline(runs, files["a"]), changes=(changed,),
    )  # fmt: skip
    (tmp_path / "try.json").write_text(json.dumps(asdict(answer)))
    return answer


def _tried(path: Path) -> Mapping[str, Any] | None:
    return shown(sums_of(path)).get("tried")


@pytest.mark.parametrize("name", ["a", "b"])
def test_captures_of_a_trial_show_its_answer(tmp_path: Path, trial: Try, name: str) -> None:
    part = _tried(tmp_path / f"{name}.sqlite")
    assert part is not None
    assert part["baseline"].startswith("train.py on CPU, 2 threads, without a change: a step")
    (change,) = part["changes"]
    assert change["cells"][:3] == ["threads=1", "faster", "0.50x"]
    assert change["cells"][4] == "0.60x"
    assert change["code"] == trial.changes[0].code
    assert 0 <= change["bar"]["low"] < change["bar"]["mid"] < 50
    assert change["bar"]["low"] + change["bar"]["length"] < 50
    assert change["sentences"] == []  # it changes no loss


def test_the_middle_of_the_axis_is_an_unchanged_time_and_its_ends_cut_intervals() -> None:
    bar = tried._bar(TimeRatio(0.25, 1.0, 4.0), extent=math.log(2))
    assert bar == {"low": 0, "length": 100, "mid": 50}


@pytest.mark.slow
def test_other_captures_next_to_a_trial_do_not(tmp_path: Path, trial: Try) -> None:
    del trial
    assert _tried(capture(tmp_path / "other.sqlite", steps=2)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["", "[]", '{"baseline": {"capture": "a.sqlite"}, "changes": []}']
)
def test_another_file_with_its_name_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / "try.json").write_text(content)
    assert _tried(capture(tmp_path / "a.sqlite", steps=2)) is None


def test_a_trials_answer_round_trips(trial: Try) -> None:
    """Fields of later versions are ignored."""
    assert from_json({**json.loads(json.dumps(asdict(trial))), "later": 1}) == trial
    assert from_json({"changes": [1]}) is None
