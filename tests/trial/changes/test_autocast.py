"""Autocast around outermost modules."""

from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from pyprof.trial.change import changes
from pyprof.trial.script.outermost import Call, OutermostCalls
from tests.trial.built import run_child, training


@pytest.mark.slow
def test_bf16_changes_losses_a_little(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py")
    plain, half = run_child(script), run_child(script, "bf16")
    assert half.code == 0
    assert half.losses != plain.losses
    assert half.losses == pytest.approx(plain.losses, rel=0.02)


@pytest.mark.slow
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


def test_steps_that_a_scaler_skips_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disabled scaler has no scale."""
    for owner, name in ((torch.amp.GradScaler, "__init__"), (torch.amp.GradScaler, "update"),
                        (torch.autocast, "__enter__")):  # fmt: skip
        monkeypatch.setattr(owner, name, getattr(owner, name))
    notes: list[str] = []
    run = SimpleNamespace(calls=OutermostCalls(), note=notes.append)
    end = changes()["fp16"].apply(run)
    torch.amp.GradScaler("cpu", enabled=False).update()
    weight = torch.nn.Parameter(torch.ones(1))
    scaler, optimizer = torch.amp.GradScaler("cpu", 8.0), torch.optim.SGD([weight])
    for factor in (float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(factor * weight).backward()
        scaler.step(optimizer)
        scaler.update()
    assert end
    end()
    (note,) = notes
    assert "not finite in 1 of 2 steps" in note
    assert note.endswith("its scale fell from 8 to 4")


_AUTOCAST = "the script has autocast already"
_NO_SCALER = "the script has no GradScaler, without which gradients underflow"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "setup", "why"),
    [
        ("bf16", "torch.autocast('cpu', torch.bfloat16).__enter__()", _AUTOCAST),
        ("bf16", "S = nn.Sequential\nS.forward = torch.autocast('cpu', torch.bfloat16)(S.forward)",
         _AUTOCAST),
        ("bf16", INSIDE, _AUTOCAST),
        ("fp16", "", _NO_SCALER),
        ("fp16", "torch.amp.GradScaler('cpu', enabled=False)", _NO_SCALER),
    ],
    ids=["around", "decorator", "inside of the module", "no scaler", "a disabled scaler"],
)  # fmt: skip
def test_a_script_with_autocast_or_without_a_scaler_is_refused(
    tmp_path: Path, change: str, setup: str, why: str
) -> None:
    """Autocast as in Hugging Face's Trainer with bf16=True."""
    done = run_child(training(tmp_path / "a.py", setup=setup), change)
    assert done.refused == {change: why}


@pytest.mark.parametrize(
    ("name", "left"), [("float64", True), ("bfloat16", True), ("float32", False)]
)
def test_weights_that_autocast_leaves_are_not_called_tried(
    monkeypatch: pytest.MonkeyPatch, name: str, *, left: bool
) -> None:
    monkeypatch.setattr(torch.autocast, "__enter__", torch.autocast.__enter__)
    run = SimpleNamespace(calls=OutermostCalls())
    why_no_effect = changes()["bf16"].apply(run)
    with run.calls.around[0](Call(torch.nn.Linear(1, 1, dtype=getattr(torch, name)), (), {})):
        pass
    why = f"autocast leaves weights of torch.{name} as they are"
    assert why_no_effect
    assert why_no_effect() == (why if left else None)


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


@pytest.mark.slow
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
    settles = run_child(script, "fp16")
    assert (settles.code, len(settles.step_ns)) == (0, 9)
    assert "which the GradScaler skipped; its scale fell from 65536 to" in settles.notes[0]
