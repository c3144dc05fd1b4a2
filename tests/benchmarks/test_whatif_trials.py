"""Trials as pairs of a prediction of `pyprof whatif` and its measurement."""

import json
from pathlib import Path

import numpy as np
import pytest

from pyprof.answers.whatif_answer import PredictedChange, PredictedTime
from pyprof.marker import Tensor
from tests.analysis.captures import US, Work, capture, op, write_dict
from tests.benchmarks import benchmark

trials = benchmark("whatif_trials")
_SQUARE = Tensor((4096, 4096), "float32")


def _record(path: Path, us: int) -> str:
    """Record a product of squares of a given time, and return a path that has moved since."""
    work = [Work((10 * US, (10 + us) * US), (0, 5 * US), "ampere_sgemm_128x64_tn")]
    ranges = [op("matmul", (-100, 6 * US), _SQUARE, _SQUARE)]
    write_dict(path, capture(work, (), ranges))
    return f"/elsewhere/{path.name}"


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Write a trial of TF32, which took 1,950 us, of changes without a rule, of a refused one."""
    ratio = {"low": 0.1, "mid": 0.25, "high": 0.3}
    after = _record(tmp_path / "after.dict", 1950)
    changes = [
        {"change": "tf32", "verdict": "faster", "capture": after, "time_ratio": ratio},
        {"change": "channels-last", "verdict": "faster", "capture": after, "time_ratio": ratio},
        {"change": "tf32 + bf16", "verdict": "faster", "capture": after, "time_ratio": ratio},
        {"change": "compile", "verdict": "refused", "capture": None, "time_ratio": None},
    ]
    before = _record(tmp_path / "before.dict", 10_000)
    document = {"script": "a.py", "baseline": {"capture": before}, "changes": changes}
    (tmp_path / "try.json").write_text(json.dumps(document))
    return tmp_path


def test_each_predicted_change_is_compared(trial: Path) -> None:
    """Products take 19.5 of 156 parts in TF32; records alone predict no step."""
    kernels, *told = trials.outcomes(trial)
    assert (kernels.change, kernels.model) == ("--dtype tf32", "a.py")
    assert kernels.expected_ns == pytest.approx(10e6 * 19.5 / 156, rel=1e-3)
    assert kernels.real_ns == 1950 * US
    assert told[0].startswith("tf32 of a.py: ")
    assert told[1:] == [
        "channels-last of a.py: no rule predicts it",
        "tf32 + bf16 of a.py: no rule predicts it",
        "compile of a.py: refused, it was not recorded",
    ]


def test_a_step_is_compared_with_the_interval_that_was_measured() -> None:
    given = PredictedChange(
        change="--dtype tf32", kernels_ns=PredictedTime(now=100, low=10, expected=20, high=30),
        step_ns=PredictedTime(now=200, low=80, expected=100, high=120), step_why=None, rows=1,
        formula="", assumption="", validation="", code="",
    )  # fmt: skip
    tried = {"time_ratio": {"low": 0.3, "mid": 0.4, "high": 0.6}}
    kernels, step = trials._compared("tf32 of a.py", "a.py", given, tried, np.array([10, 15]))
    assert kernels.error == pytest.approx(-0.2)
    assert step.line == (
        "tf32 of a.py: a step 0.50x predicted, 0.40x measured, error +25.0%, inside 0.30x to 0.60x"
    )
