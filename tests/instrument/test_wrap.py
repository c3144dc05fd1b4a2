"""Tests of pyprof.instrument.wrap: the user's own ops."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import pyprof
from pyprof import marker

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder


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
    """Forward and backward have markers, wrapped before init() or after it."""
    if first == "init":
        pyprof.init(force=True)
    pyprof.wrap(Double, "forward")
    pyprof.wrap(Double, "backward")
    pyprof.init(force=True)
    x = torch.ones(2, requires_grad=True)
    recorder.clear()
    Double.apply(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    found = [(call.mod, call.op) for call in recorder.calls if call.mod == "Double"]
    assert found == [("Double", "forward"), ("Double", "backward")]


def test_methods_and_class_methods(listening: Recorder) -> None:
    """`self` and `cls` arrive; class methods stay class methods."""
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
    """A C extension's function, or one of Python, by the module that holds it."""
    extension = ModuleType("my_kernels")
    extension.fused = lambda x, y: x + y  # type: ignore[attr-defined]
    pyprof.wrap(extension, "fused")
    assert extension.fused(torch.ones(1), 1).item() == 2
    assert ("my_kernels", "fused") in [(call.mod, call.op) for call in listening.calls]


def test_stop_takes_wrappers_off_and_init_puts_them_on(recorder: Recorder) -> None:
    """What was asked for once holds for each init()."""
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


def test_a_function_of_a_module_goes_by_both_names(
    listening: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mylib.rotate`, under which docs/own-ops.md registers its formula."""
    mylib = ModuleType("mylib")
    monkeypatch.setattr(mylib, "rotate", lambda x, _: x, raising=False)
    monkeypatch.setitem(sys.modules, "mylib", mylib)
    x = torch.ones(2, 3)
    pyprof.wrap(mylib, "rotate")
    mylib.rotate(x, x)
    assert [(call.mod, call.op, len(call.args)) for call in listening.calls[-1:]] == [
        ("mylib", "rotate", 2)
    ]


def test_what_is_not_there_cannot_be_wrapped() -> None:
    """A wrong name is an error at once, not at init()."""
    with pytest.raises(AttributeError, match="backwards"):
        pyprof.wrap(Double, "backwards")
