"""Losses from which a script's backward passes start."""

import pytest

torch = pytest.importorskip("torch")

from pyprof.trial.script.losses import Losses


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> Losses:
    monkeypatch.setattr(torch.autograd, "backward", torch.autograd.backward)
    monkeypatch.setattr(torch.amp.GradScaler, "scale", torch.amp.GradScaler.scale)
    kept = Losses(lambda: None)
    kept.install()
    return kept


def test_each_loss_is_kept_as_it_was_at_its_backward_pass(losses: Losses) -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = weight.sum()
    loss.backward()
    with torch.no_grad():
        loss += 5
    torch.autograd.backward([3 * weight.sum(), 4 * weight.sum()])
    assert losses.values() == [2, 6, 8]


def test_a_scaled_loss_is_kept_unscaled(losses: Losses) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(torch.ones(1, requires_grad=True).sum()).backward()
    assert losses.values() == [1]


def test_other_arguments_of_backward_are_passed_on(losses: Losses) -> None:
    weight = torch.ones(2, requires_grad=True)
    (2 * weight).backward(torch.ones(2))
    torch.autograd.backward(iter([weight.sum()]))
    edge = torch.autograd.graph.get_gradient_edge(weight.sum())
    torch.autograd.backward(edge, torch.ones(()))
    assert losses.values() == [2]
    assert weight.grad is not None
    assert weight.grad.tolist() == [4, 4]
