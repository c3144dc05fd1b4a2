"""Modules whose outputs no backward pass uses."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from pyprof.trial.changes.no_grad import _Use, _why_no_effect
from tests.trial.built import run_child, training

TEACHER = """
teacher = nn.Linear(8, 3)
cross_entropy = nn.functional.cross_entropy
tracked = []
def loss_of(out, y):
    told = teacher(x)
    tracked.append(told.requires_grad)
    {write}
    return cross_entropy(out, y)
nn.functional.cross_entropy = loss_of
import atexit; atexit.register(lambda: print(tracked))
"""


@pytest.mark.slow
def test_a_teacher_is_called_without_gradients(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup=TEACHER.format(write=""))
    done = run_child(script, "no-grad")
    assert (done.code, done.no_effect) == (0, {}), done.error
    assert done.losses == run_child(script).losses


@pytest.mark.slow
def test_outputs_written_into_are_refused(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", setup=TEACHER.format(write="told += 1"))
    why = "the script writes into the outputs in place"
    assert run_child(script, "no-grad").refused == {"no-grad": why}


@pytest.mark.slow
def test_modules_that_are_trained_keep_gradients(tmp_path: Path) -> None:
    done = run_child(training(tmp_path / "a.py"), "no-grad")
    assert done.no_effect == {"no-grad": "a backward pass uses the outputs of every module"}


@pytest.mark.slow
def test_modules_of_an_optimizer_keep_gradients_until_they_are_used(tmp_path: Path) -> None:
    """Losses of four steps are accumulated, as for a generator that waits for its turn."""
    script = training(tmp_path / "a.py", steps=8)
    text = script.read_text().replace("    loss.backward()\n    optimizer.step()", ACCUMULATED)
    script.write_text(text)
    done = run_child(script, "no-grad")
    assert done.code == 0, done.error
    assert done.no_effect == {"no-grad": "a backward pass uses the outputs of every module"}
    assert done.losses == run_child(script).losses


ACCUMULATED = """
    total = loss if step % 4 == 0 else total + loss
    if step % 4 == 3:
        total.backward()
        optimizer.step()
"""


@pytest.mark.slow
def test_a_script_without_gradients_has_nothing_to_change(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text(
        "import torch\nmodel = torch.nn.Linear(2, 2)\nfor _ in range(6):\n"
        "    with torch.no_grad(): model(torch.ones(2))\n"
    )
    assert run_child(script, "no-grad").no_effect == {
        "no-grad": "no module is called with gradients"
    }
    script.write_text(script.read_text().replace("with torch.no_grad(): ", ""))
    assert run_child(script, "no-grad").no_effect == {}


@pytest.mark.parametrize(
    ("uses", "why"),
    [
        ([_Use(), _Use()], "no module is called with gradients"),
        ([_Use(), _Use(calls=2)], "no module was called often enough"),
        ([_Use(calls=2, trained=True)], "an optimizer trains every module"),
        ([_Use(calls=3, used=True), _Use(calls=3, changed=True)], None),
        ([_Use(calls=9, used=True, changed=True)], "a backward pass uses outputs of several calls"),
    ],
)
def test_why_no_module_was_changed(uses: list[_Use], why: str | None) -> None:
    assert _why_no_effect(uses) == why
