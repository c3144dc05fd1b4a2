"""Outermost modules compiled in place."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


def test_compiled_modules_have_the_same_losses(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py")
    plain, compiled = run_child(script), run_child(script, "compile")
    assert compiled.code == 0, compiled.error
    assert any(compiled.compiling)
    assert compiled.losses == pytest.approx(plain.losses, rel=1e-4)


def test_dropout_draws_the_same_numbers_where_losses_are_checked(tmp_path: Path) -> None:
    setup = "nn.ReLU = lambda: nn.Dropout(0.5)"
    script = training(tmp_path / "a.py", setup=setup)
    checked = run_child(script, "compile", mode="losses")
    assert checked.losses == pytest.approx(run_child(script).losses, rel=1e-4)


def test_a_script_that_compiles_is_refused(tmp_path: Path) -> None:
    setup = "S = nn.Sequential\nnn.Sequential = lambda *a: torch.compile(S(*a), backend='eager')"
    done = run_child(training(tmp_path / "a.py", setup=setup), "compile")
    assert done.refused == {"compile": "the script compiles already"}
