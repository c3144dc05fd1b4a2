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


def test_changes_of_torch_have_no_effect_on_a_script_without_it(tmp_path: Path) -> None:
    """They wait for its import; a change from before the script starts is applied."""
    (script := tmp_path / "a.py").write_text("print(1)")
    (patch := tmp_path / "b.py").write_text("")
    done = run_child(script, "workers=2", "bf16", f"patch={patch}", torch_is_imported=False)
    assert (done.code, done.refused) == (0, {})
    why = "the script does not import torch"
    assert done.no_effect == {"workers=2": why, "bf16": why}


def test_a_run_that_cannot_be_recorded_says_why(tmp_path: Path) -> None:
    """In the words of the error, without its class."""
    pytest.importorskip("torch")
    (script := tmp_path / "a.py").write_text("")
    done = run_child(script, mode="profile", capture=str(tmp_path / "none" / "net"))
    assert done.code == 1
    assert done.error.startswith(f"{tmp_path / 'none'}: no such folder; ")
