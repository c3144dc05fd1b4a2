"""Tests of pyprof.instrument.wrap: the user's own ops."""

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType, ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import pyprof
from pyprof import marker
from pyprof.instrument import lifecycle
from tests.instrument.conftest import Recorder
from tests.known import known


class Double(torch.autograd.Function):
    """A user's op, with a backward of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return grad * 2


class Adds(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @classmethod
    def made(cls, bias: int) -> int:
        return bias


@pytest.mark.parametrize("first", ["wrap", "init"])
def test_functions_of_autograd(first: str, recorder: Recorder) -> None:
    if first == "init":
        pyprof.init(force=True)
    pyprof.wrap(Double, "forward")
    pyprof.wrap(Double, "backward")
    pyprof.init(force=True)
    x = torch.ones(2, requires_grad=True)
    recorder.clear()
    Double.apply(x).sum().backward()
    assert known(x.grad).tolist() == [2, 2]
    found = [(call.mod, call.op) for call in recorder.calls if call.mod == "Double"]
    assert found == [("Double", "forward"), ("Double", "backward")]


@pytest.mark.slow
def test_methods_and_class_methods(listening: Recorder) -> None:
    pyprof.wrap(Adds, "forward")
    pyprof.wrap(Adds, "made")
    net = Adds()
    assert net(torch.ones(1)).item() == 2
    assert Adds.made(3) == 3
    assert Adds.made(bias=4) == 4
    calls = [call for call in listening.calls if call.mod == "Adds"]
    assert [call.op for call in calls] == ["forward", "made", "made"]
    assert calls[0].args == (marker.Opaque("Adds"), marker.Tensor((1,), "float32"))
    assert calls[2].kwargs == {"bias": 4}


def test_functions_of_modules(listening: Recorder) -> None:
    extension = ModuleType("my_kernels")
    extension.fused = lambda x, y: x + y  # type: ignore[attr-defined]
    pyprof.wrap(extension, "fused")
    assert extension.fused(torch.ones(1), 1).item() == 2
    calls = [(call.mod, call.op, len(call.args)) for call in listening.calls]
    assert ("my_kernels", "fused", 2) in calls


def test_stop_takes_wrappers_off_and_init_puts_them_on(recorder: Recorder) -> None:
    raw = vars(Double)["forward"]
    pyprof.wrap(Double, "forward")
    assert vars(Double)["forward"] is raw
    for _ in range(2):
        pyprof.init(force=True)
        assert vars(Double)["forward"] is not raw
        pyprof.stop()
        assert vars(Double)["forward"] is raw
    assert recorder.depth == 0


def test_wrapping_twice_is_wrapping_once(listening: Recorder) -> None:
    pyprof.wrap(Adds, "forward")
    pyprof.wrap(Adds, "forward")
    Adds()(torch.ones(1))
    assert [call.op for call in listening.calls if call.mod == "Adds"] == ["forward"]


def test_wrapping_a_missing_name_is_an_error_at_once() -> None:
    with pytest.raises(AttributeError, match="backwards"):
        pyprof.wrap(Double, "backwards")


class Dispatched(Function):
    """An autograd function that calls no op that is wrapped."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        """Call torch's dispatcher itself."""
        return torch.ops.aten.mul(x, 2)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.mul(grads[0], 2)


def scripted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


X, ONE = torch.ones(2, requires_grad=True), torch.ones(())
WAYS: dict[str, Callable[[], Callable[[], object]]] = {
    "backward": lambda: lambda: (X * 1).sum().backward(ONE),
    "torch.autograd.backward": lambda: lambda: torch.autograd.backward([(X * 1).sum()], [ONE]),
    "torch.autograd.grad": lambda: lambda: torch.autograd.grad([(X * 1).sum()], [X], [ONE]),
    "Function.apply": lambda: lambda: Dispatched.apply(X),
    "ScriptFunction": lambda: partial(torch.jit.script(scripted), X),
    "ScriptModule": lambda: partial(torch.jit.trace(torch.nn.Identity(), ONE), X),
}
"""Calls whose work no op's marker shows; prepared first."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript is old
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("way", WAYS)
def test_the_line_of_the_call_is_around_it(recorder: Recorder, way: str) -> None:
    call = WAYS[way]()
    lifecycle.init(force=True)
    call(); line = sys._getframe().f_lineno  # fmt: skip # noqa: E702
    if isinstance(call, FunctionType):
        line = call.__code__.co_firstlineno
    assert recorder.traces[-1][-1] == f"{__file__}:{line}"
    depth, last = recorder.pushed[-1]
    assert last.startswith("{'traceMarker'")
    assert depth == ("Module" in way)


def test_without_stacks_there_is_no_trace(recorder: Recorder) -> None:
    lifecycle.init(force=True, stack=False)
    torch.ones(2, requires_grad=True).sum().backward(torch.ones(()))
    assert recorder.traces == []


@pytest.mark.slow
@pytest.mark.usefixtures("recorder")
def test_an_exception_closes_the_range_and_stop_restores_the_function() -> None:
    homes = [torch.autograd, Function, torch._C.ScriptFunction, torch._C.ScriptMethod]
    before = [dict(vars(home)) for home in homes]
    lifecycle.init(force=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()
    lifecycle.stop()
    assert [dict(vars(home)) for home in homes] == before
