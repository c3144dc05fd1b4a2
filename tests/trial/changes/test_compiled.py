"""Outermost modules compiled in place."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from pyprof.trial.changes import compiled as change
from pyprof.trial.run_files import Mode
from tests.trial.built import run_child, training


@pytest.mark.long
def test_compiled_modules_have_the_same_losses(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py")
    plain, compiled = run_child(script), run_child(script, "compile")
    assert compiled.code == 0, compiled.error
    assert any(compiled.compiling)
    assert compiled.losses == pytest.approx(plain.losses, rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["time", "profile"])
def test_modules_of_torch_are_compiled_as_one_graph(tmp_path: Path, mode: Mode) -> None:
    setup = "S = nn.Sequential\nnn.Sequential = lambda *a: S(S(*a[:2]), S(*a[2:]))"
    script = training(tmp_path / "a.py", setup=setup)
    check = (
        "from torch._dynamo.utils import counters\nassert counters['stats']['unique_graphs'] == 1"
    )
    script.write_text(script.read_text() + check)
    done = run_child(script, "compile", mode=mode, capture=str(tmp_path / "net"))
    assert done.code == 0, done.error
    assert not done.notes


@pytest.mark.long
def test_dropout_draws_the_same_numbers_where_losses_are_checked(tmp_path: Path) -> None:
    setup = "nn.ReLU = lambda: nn.Dropout(0.5)"
    script = training(tmp_path / "a.py", setup=setup)
    checked = run_child(script, "compile", mode="losses")
    assert checked.losses == pytest.approx(run_child(script).losses, rel=1e-4)


@pytest.mark.long
def test_a_script_that_compiles_is_refused(tmp_path: Path) -> None:
    setup = "S = nn.Sequential\nnn.Sequential = lambda *a: torch.compile(S(*a), backend='eager')"
    done = run_child(training(tmp_path / "a.py", setup=setup), "compile")
    assert done.refused == {"compile": "the script compiles already"}


@pytest.mark.long
def test_a_disabled_compiler_is_not_called_tried(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py")
    switched_off = "import os; os.environ['TORCH_COMPILE_DISABLE'] = '1'\n"
    script.write_text(switched_off + script.read_text())
    (why,) = run_child(script, "compile", torch_is_imported=False).no_effect.values()
    assert why.startswith("torch compiled nothing")


def test_a_graph_break_has_the_users_line_and_the_first_line_of_its_reason() -> None:
    places = [("net.py", 7), ("/site-packages/torch/nn/modules/linear.py", 9)]
    stack = [SimpleNamespace(filename=name, lineno=line) for name, line in places]
    graph_break = SimpleNamespace(user_stack=stack, reason="Call of print\n  Explanation: it ...")
    assert change._place(graph_break) == "net.py:7 (Call of print)"


@pytest.mark.long
def test_graph_breaks_and_recompilations_have_their_lines(tmp_path: Path) -> None:
    setup = (
        "import torch._dynamo\ntorch._dynamo.config.automatic_dynamic_shapes = False\n"
        "class Net(nn.Sequential):\n    def forward(self, x):\n"
        "        torch._dynamo.graph_break()\n"
        "        self.n = getattr(self, 'n', 0) + 1\n"
        "        return super().forward(x[: 2 + self.n % 2] if self.n > 4 else x)\n"
        "nn.Sequential = Net\nce = nn.functional.cross_entropy\n"
        "nn.functional.cross_entropy = lambda o, y: ce(o, y[: len(o)])"
    )
    script = training(tmp_path / "a.py", setup=setup)
    done = run_child(script, "compile")
    assert done.code == 0, done.error
    breaks, again = (note for note in done.notes if str(script) in note)
    assert "graph break" in breaks
    assert f"{script}:9" in breaks
    assert "recompilation" in again


def test_recompilations_are_reported_if_dynamo_was_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frames = [
        SimpleNamespace(
            co_filename="net.py", co_firstlineno=7, co_name="forward", compile_id=number
        )
        for number in ("0/0", "0/1", "0/2")
    ]
    utils = SimpleNamespace(get_compilation_metrics=lambda: frames)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", utils)
    assert change._notes() == ["2 recompilations: net.py:7 (forward)"]
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils")
    assert change._notes() == []
