"""Tests of pyprof.instrument.wrap."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.autograd import Function

from pyprof.instrument import lifecycle

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder


class Double(Function):
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
    "Function.apply": lambda: lambda: Double.apply(X),
    "ScriptFunction": lambda: partial(torch.jit.script(scripted), X),
    "ScriptModule": lambda: partial(torch.jit.trace(torch.nn.Identity(), ONE), X),
}
"""Calls of whose work no op's marker tells; made ready first."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # TorchScript is old
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("way", WAYS)
def test_the_line_of_the_call_is_around_it(recorder: Recorder, way: str) -> None:
    """Written last: inside of it no op names itself."""
    call = WAYS[way]()
    lifecycle.init(force=True)
    call(); line = sys._getframe().f_lineno  # fmt: skip # noqa: E702
    if isinstance(call, FunctionType):
        line = call.__code__.co_firstlineno
    assert recorder.traces[-1][-1] == f"{__file__}:{line}"
    depth, last = recorder.pushed[-1]
    assert last.startswith("{'traceMarker'")
    assert depth == ("Module" in way)


def test_nothing_is_told_without_stacks(recorder: Recorder) -> None:
    """`init(stack=False)` wants no lines."""
    lifecycle.init(force=True, stack=False)
    torch.ones(2, requires_grad=True).sum().backward(torch.ones(()))
    assert recorder.traces == []


@pytest.mark.usefixtures("recorder")
def test_an_error_closes_the_range_and_everything_is_put_back() -> None:
    """The recorder sees to the first."""
    homes = [torch.autograd, Function, torch._C.ScriptFunction, torch._C.ScriptMethod]
    before = [dict(vars(home)) for home in homes]
    lifecycle.init(force=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()
    lifecycle.stop()
    assert [dict(vars(home)) for home in homes] == before
