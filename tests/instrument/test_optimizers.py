import functools
import inspect
from typing import Any

import pytest
import torch
from torch import nn

import pyprof
from tests.instrument.conftest import Recorder

OPTIMIZERS = {
    name: kind
    for name, kind in vars(torch.optim).items()
    if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and name != "Optimizer"
}


def train(kind: type[torch.optim.Optimizer]) -> list[torch.Tensor]:
    """Take three steps; return the weights."""
    torch.manual_seed(1)
    sparse = issubclass(kind, torch.optim.SparseAdam)
    embedding = nn.Embedding(5, 3, sparse=sparse)
    net = embedding if sparse else nn.Sequential(embedding, nn.Linear(3, 2))
    params = [p for p in net.parameters() if p.dim() == 2]
    optimizer: Any = kind(params, lr=0.1)  # type: ignore[call-arg]

    def closure() -> Any:
        optimizer.zero_grad()
        loss = net(torch.tensor([0, 1, 4])).pow(2).sum()
        loss.backward()
        return loss.item()

    for _ in range(3):
        if issubclass(kind, torch.optim.LBFGS):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    return [p.detach() for p in params]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("when", ["first built before", "first built after"])
def test_every_optimizer_of_torch(when: str, recorder: Recorder) -> None:
    if when == "first built after":
        pyprof.init(force=True)
        for name, kind in OPTIMIZERS.items():
            train(type(name, (kind,), dict(vars(kind))))
        pyprof.stop()
    expected = {name: train(kind) for name, kind in OPTIMIZERS.items()}
    pyprof.init(force=True)
    for name, kind in OPTIMIZERS.items():
        recorder.clear()
        found = train(kind)
        assert all(torch.equal(a, b) for a, b in zip(found, expected[name], strict=True)), name
        steps = [call.mod for call in recorder.calls if call.op == "step"]
        if name == "LBFGS":  # which has a closure
            steps = [text[15:-5] for text in recorder.texts if text.startswith("Optimizer.step#")]
        assert steps == [name] * 3


@pytest.mark.parametrize("by_name", [False, True], ids=["by position", "by name"])
def test_a_closure_is_not_part_of_the_step(listening: Recorder, by_name: bool) -> None:  # noqa: FBT001 - a parameter
    net = nn.Linear(2, 1)
    optimizer: Any = torch.optim.SGD(net.parameters(), lr=0.1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = net(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    listening.clear()
    loss = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
    assert isinstance(loss, torch.Tensor)
    texts = [text for text in listening.texts if text.startswith("Optimizer")]
    assert texts == ["Optimizer.step#SGD.step", "Optimizer.closure#"]
    assert "step" not in listening.ops
    assert listening.ops.index("linear") < listening.ops.index("add_")
    inside = {text: depth for depth, text in listening.pushed}
    assert inside["layer:Linear"] > inside["Optimizer.closure#"]


def new_class() -> type[torch.optim.SGD]:
    class Mine(torch.optim.SGD):
        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            if closure == "raise":
                raise RuntimeError("as told")
            return super().step(closure)

    return Mine


def test_a_class_made_later_is_wrapped_when_it_is_built(listening: Recorder) -> None:
    torch.optim.SGD([nn.Parameter(torch.ones(1))])  # torch touches `step` of built classes only
    optimizer = new_class()([nn.Parameter(torch.ones(1))])
    listening.clear()
    optimizer.step()
    assert [call.mod for call in listening.calls if call.op == "step"] == ["Mine", "SGD"]


def test_a_step_that_resembles_its_wrapper_is_inherited(listening: Recorder) -> None:
    """`functools.wraps` copies a wrapper's attributes to the step that calls it."""
    torch.optim.SGD([nn.Parameter(torch.ones(1))])  # torch touches `step` of built classes only
    mine = new_class()
    functools.update_wrapper(mine.step, torch.optim.SGD.step)
    inherited = type("Inherited", (mine,), {})
    optimizer = inherited([nn.Parameter(torch.ones(1))])
    listening.clear()
    optimizer.step()
    assert [call.mod for call in listening.calls if call.op == "step"] == ["Inherited", "SGD"]


def test_a_step_under_a_default_device_is_named(listening: Recorder) -> None:
    """`torch.set_default_device` is a mode that every function could have to do with."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))])
    listening.clear()
    with torch.device("cpu"):
        optimizer.step()
    assert [call.mod for call in listening.calls if call.op == "step"] == ["SGD"]


def test_a_step_that_raises_leaves_no_open_range(listening: Recorder) -> None:
    optimizer: Any = new_class()([nn.Parameter(torch.ones(1))])
    with pytest.raises(RuntimeError, match="as told"):
        optimizer.step("raise")
    assert listening.depth == 0


def test_torchs_own_hooks_stay(recorder: Recorder) -> None:
    kind = new_class()
    pyprof.init(force=True)
    optimizer = kind([nn.Parameter(torch.ones(1))])
    called: list[int] = []
    optimizer.register_step_post_hook(lambda *_: called.append(1))
    optimizer.step()
    pyprof.stop()
    optimizer.step()
    kind([nn.Parameter(torch.ones(1))])
    optimizer.step()
    assert getattr(kind.step, "hooked", False)
    # the hook runs for Mine.step and, as torch does it, for the inherited step that it calls
    expected = len(called) // 3
    assert called == [1] * 3 * expected
    assert recorder.depth == 0


def test_schedulers_and_scalers_work(listening: Recorder) -> None:
    """They wrap or read `step` on an instance."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.5]
    assert "step" in listening.ops


def test_a_step_that_is_not_a_function(listening: Recorder) -> None:
    """A callable object that looks like the original may replace `step`."""

    class Traced:
        def __init__(self, step: Any) -> None:
            functools.update_wrapper(self, step)

        def __call__(self, *args: Any) -> None:
            """Do nothing."""

    class Fresh(torch.optim.SGD):
        pass

    weight = nn.Parameter(torch.ones(1))
    step = Fresh([weight]).step.__func__.__wrapped__  # type: ignore[attr-defined]
    Fresh.step = Traced(step)  # type: ignore[assignment, method-assign]
    listening.clear()
    Fresh([weight]).step()
    assert listening.ops[-1:] == ["step"]
