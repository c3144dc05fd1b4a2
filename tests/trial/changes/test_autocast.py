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


INSIDE = """
f = nn.Linear.forward
def forward(self, x):
    with torch.autocast('cpu', torch.bfloat16): return f(self, x)
nn.Linear.forward = forward
"""


@pytest.mark.parametrize(
    "setup",
    [
        "nn.Sequential.forward = torch.autocast('cpu', torch.bfloat16)(nn.Sequential.forward)",
        INSIDE,
    ],
    ids=["decorator", "inside"],
)
def test_autocast_inside_of_the_module_is_found(tmp_path: Path, setup: str) -> None:
    """As in Hugging Face's Trainer with bf16=True."""
    done = run_child(training(tmp_path / "a.py", setup=setup), "bf16")
    assert done.refused == {"bf16": "the script has autocast already"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["float64", "bfloat16"])
def test_weights_that_autocast_leaves_are_not_called_tried(tmp_path: Path, name: str) -> None:
    script = training(tmp_path / "a.py", setup=f"torch.set_default_dtype(torch.{name})")
    why = f"autocast leaves weights of torch.{name} as they are"
    assert run_child(script, "bf16").no_effect == {"bf16": why}


def test_a_disabled_scaler_does_not_count(tmp_path: Path) -> None:
    setup = "torch.amp.GradScaler('cpu', enabled=False)"
    (why,) = run_child(training(tmp_path / "a.py", setup=setup), "fp16").refused.values()
    assert why.startswith("the script has no GradScaler")


_SCALED = """
import torch
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), 1e-9)
scaler = torch.amp.GradScaler("cpu", init_scale={scale})
for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.ones(8, 64)).pow(2).sum() * {factor}
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_overflow_in_float16_is_a_failure_and_a_scale_that_settles_is_reported(
    tmp_path: Path,
) -> None:
    """Steps that the GradScaler skips are still steps of the loop."""
    script = tmp_path / "a.py"
    script.write_text(_SCALED.format(scale="65536.0", factor="1e6"))
    without, broken = run_child(script), run_child(script, "fp16")
    assert (without.code, len(without.step_ns), without.notes) == (0, 9, [])
    assert (broken.code, len(broken.step_ns)) == (1, 9)
    assert "float16 overflows: gradients were not finite in 10 of 10 steps" in broken.error
    script.write_text(_SCALED.format(scale="65536.0", factor="1.0"))
    apply_global_conditions = run_child(script, "fp16")
    assert apply_global_conditions.code == 0
    assert len(apply_global_conditions.step_ns) == 9
    assert (
        "which the GradScaler skipped; its scale fell from 65536 to"
        in apply_global_conditions.notes[0]
    )
