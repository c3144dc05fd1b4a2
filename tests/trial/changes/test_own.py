"""Changes of the user: variables, arguments, files."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


def test_a_patch_runs_before_the_script_and_at_its_loop(tmp_path: Path) -> None:
    patch = tmp_path / "scale.py"
    patch.write_text(
        "import torch.nn.functional as F\nplain = F.cross_entropy\n"
        "F.cross_entropy = lambda *a: 1.01 * plain(*a)\n"
        "def before_loop(main): print(main.model)\n"
    )
    script = training(tmp_path / "a.py")
    done = run_child(script, f"patch={patch}")
    assert (done.code, done.no_effect) == (0, {})
    assert done.losses[0] == pytest.approx(1.01 * run_child(script).losses[0])


def test_a_patch_that_raises_is_refused_with_its_error(tmp_path: Path) -> None:
    patch = tmp_path / "bad.py"
    patch.write_text("1 / 0\n")
    (why,) = run_child(training(tmp_path / "a.py"), f"patch={patch}").refused.values()
    assert why == f"{patch}: ZeroDivisionError: division by zero"
