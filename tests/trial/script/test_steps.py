"""What ends a step, and when a run ends."""

from collections import OrderedDict
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import torch.optim.optimizer as optimizer_hooks

from pyprof.trial.script.outermost import Call
from pyprof.trial.script.steps import PYPROF_STEP, Steps


class EndedError(Exception):
    """The run was ended."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return steps of a run that ends after three."""
    monkeypatch.setattr(torch.optim.Optimizer, "__init__", torch.optim.Optimizer.__init__)
    monkeypatch.setattr(torch.amp.GradScaler, "step", torch.amp.GradScaler.step)
    monkeypatch.setattr(optimizer_hooks, "_global_optimizer_post_hooks", OrderedDict())

    def reached() -> None:
        raise EndedError

    counted = Steps(3, reached)
    counted.install()
    return counted


def _call(steps: Steps, module: object, times: int) -> None:
    for _ in range(times):
        steps.module_called(Call(module, (), {}), None)  # type: ignore[arg-type]


def test_inference_ends_after_the_requested_number_of_calls(steps: Steps) -> None:
    _call(steps, torch.nn.ReLU(), 9)  # without parameters: a loss, say
    model = torch.nn.Linear(1, 1)
    _call(steps, model, 2)
    with pytest.raises(EndedError):
        _call(steps, model, 1)
    assert steps.lengths()[0] == "call 0 of Linear"


def test_an_evaluation_before_training_does_not_end_the_run(steps: Steps) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    _call(steps, model, 20)
    optimizer.step()
    optimizer.step()
    with pytest.raises(EndedError):
        optimizer.step()
    name, lengths, compiling = steps.lengths()
    assert (name, len(lengths), compiling) == ("optimizer 1 of SGD", 2, [False, False])


def test_an_optimizer_that_is_never_used_does_not_hide_inference(steps: Steps) -> None:
    model = torch.nn.Linear(1, 1)
    torch.optim.SGD(model.parameters(), 0.1)
    _call(steps, model, 5)
    assert steps.lengths()[0] == "call 0 of Linear"


def test_the_optimizer_that_steps_least_often_ends_steps() -> None:
    """Such as a GAN's generator; one that hardly ever steps does not count."""
    steps = Steps(0, lambda: None)
    kinds = [SimpleNamespace(name=name) for name in ("critic", "generator", "rare")]
    for number in range(40):
        steps.optimizer_stepped(kinds[0])
        if number % 2:
            steps.optimizer_stepped(kinds[1])
        if number == 30:
            steps.optimizer_stepped(kinds[2])
    name, lengths, _ = steps.lengths()
    assert (name, len(lengths)) == ("optimizer 1 of SimpleNamespace", 19)


def test_marked_steps_take_precedence() -> None:
    steps = Steps(0, lambda: None)
    for _ in range(4):
        steps.optimizer_stepped(steps)
        steps.step_called()
    assert steps.lengths()[0] == PYPROF_STEP


def test_calls_of_a_script_with_backward_passes_are_not_steps() -> None:
    """Such as two passes of one network, or parts of a step."""
    steps = Steps(0, lambda: None)
    steps.backward_called = True
    _call(steps, torch.nn.Linear(1, 1), 9)
    assert steps.lengths() == ("", [], [])


def test_two_optimizers_in_turn_end_the_run_once_both_reach_the_number(steps: Steps) -> None:
    """The second one of a GAN is level with the first only at the end of a step."""
    first, second = object(), object()
    for _ in range(2):
        steps.optimizer_stepped(first)
        steps.optimizer_stepped(second)
    steps.optimizer_stepped(first)
    with pytest.raises(EndedError):
        steps.optimizer_stepped(second)
