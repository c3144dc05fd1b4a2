"""Switches of torch for GPUs."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


import torch


@pytest.mark.parametrize("change", ["tf32", "cudnn-benchmark", "pin-memory"])
def test_without_a_gpu_they_are_refused(tmp_path: Path, change: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (why,) = run_child(training(tmp_path / "a.py"), change).refused.values()
    assert why.startswith("there is no GPU")
