"""Autocast around outermost modules."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.trial.built import run_child, training

pytestmark = pytest.mark.slow


def test_bf16_changes_losses_a_little(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py")
    plain, half = run_child(script), run_child(script, "bf16")
    assert half.code == 0
    assert half.losses != plain.losses
    assert half.losses == pytest.approx(plain.losses, rel=0.02)


def test_a_script_with_autocast_is_refused(tmp_path: Path) -> None:
    setup = "torch.autocast('cpu', torch.bfloat16).__enter__()"
    done = run_child(training(tmp_path / "a.py", setup=setup), "bf16")
    assert done.refused == {"bf16": "the script has autocast already"}


def test_fp16_without_a_scaler_is_refused(tmp_path: Path) -> None:
    (why,) = run_child(training(tmp_path / "a.py"), "fp16").refused.values()
    assert why.startswith("the script has no GradScaler")


def test_fp16_overflow_is_seen_in_the_losses(tmp_path: Path) -> None:
    setup = (
        "torch.amp.GradScaler('cpu')\nF = nn.functional\n"
        "linear = F.linear\nF.linear = lambda x, w, b=None: linear(x, w * 1e5, b)"
    )
    done = run_child(training(tmp_path / "a.py", setup=setup), "fp16")
    assert any(loss != loss or loss == float("inf") for loss in done.losses)  # noqa: PLR0124 - nan
