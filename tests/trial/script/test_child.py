"""The process of a run records the script only."""

import gzip
from pathlib import Path

import pytest

from tests.trial.built import run_child, training


@pytest.mark.slow
def test_recorded_stacks_are_of_the_script_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = training(tmp_path / "a.py")
    done = run_child(script, mode="profile", capture=str(tmp_path / "net"))
    text = gzip.decompress(Path(done.capture).read_bytes()).decode()
    assert "a.py:" in text
    assert "losses.py:" not in text
    assert "outermost.py:" not in text
