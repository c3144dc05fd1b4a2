"""Implementations of optimizers."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("change", ["fused-optimizer", "foreach"])
def test_losses_are_the_same_but_for_rounding(tmp_path: Path, change: str) -> None:
    script = training(tmp_path / "a.py", optimizer="Adam(p for p in model.parameters())")
    done = run_child(script, change)
    assert (done.code, done.no_effect) == (0, {})
    assert done.losses == pytest.approx(run_child(script).losses, rel=1e-5)


def test_a_script_that_chooses_itself_keeps_its_choice(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", optimizer="Adam(model.parameters(), fused=True)")
    why = "the script chooses the implementation itself (fused)"
    assert run_child(script, "foreach").no_effect == {"foreach": why}


def test_torch_says_why_it_refuses(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", optimizer="Adam(model.parameters(), differentiable=True)")
    (why,) = run_child(script, "fused-optimizer").refused.values()
    assert why.startswith("torch refuses: ")
