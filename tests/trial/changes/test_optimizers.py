"""Implementations of optimizers."""

from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from pyprof.trial.change import changes
from tests.trial.built import run_child, training


class Optimizer:
    """Takes the place of torch's, which import its compiler."""

    def __init__(
        self, params: object, *, fused: bool | None = None, foreach: bool | None = None
    ) -> None:
        del params
        self.chosen = {"fused-optimizer": fused, "foreach": foreach}


@pytest.mark.parametrize("change", ["fused-optimizer", "foreach"])
def test_an_optimizer_has_the_implementation_that_is_tried(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(Optimizer, "__init__", Optimizer.__init__)
    monkeypatch.setattr(torch, "optim", SimpleNamespace(Adam=Optimizer))
    changes()[change].apply(None)
    assert Optimizer([]).chosen[change]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("change", ["fused-optimizer", "foreach"])
def test_losses_are_the_same_but_for_rounding(tmp_path: Path, change: str) -> None:
    script = training(tmp_path / "a.py", optimizer="Adam(p for p in model.parameters())")
    done = run_child(script, change)
    assert (done.code, done.no_effect) == (0, {})
    assert done.losses == pytest.approx(run_child(script).losses, rel=1e-5)


@pytest.mark.slow
def test_an_implementation_that_the_script_or_torch_chooses_stays(tmp_path: Path) -> None:
    script = training(tmp_path / "a.py", optimizer="Adam(model.parameters(), fused=True)")
    why = "the script chooses the implementation itself (fused)"
    assert run_child(script, "foreach").no_effect == {"foreach": why}
    script = training(tmp_path / "a.py", optimizer="Adam(model.parameters(), differentiable=True)")
    (why,) = run_child(script, "fused-optimizer").refused.values()
    assert why.startswith("torch refuses: ")
