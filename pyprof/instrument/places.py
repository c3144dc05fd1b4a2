"""Where calls are made of whose work no op's marker tells: a trace marker around each call.

What the engine of autograd, a function with a backward pass of its own, or TorchScript runs is
called in C++, by no op that is wrapped.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function

from pyprof.instrument.emit import EMITTER
from pyprof.instrument.op import untraceable
from pyprof.instrument.stack import LANDMARKS, trace_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.patch import Patches


def wrap_places(patches: Patches) -> None:
    """Mark where backward passes, autograd functions and TorchScript are called."""
    engine = "_engine_run_backward"  # what every way to start a backward pass calls
    patches.replace(torch.autograd, engine, _placed(getattr(torch.autograd, engine)))
    apply: Any = vars(Function)["apply"]
    patches.replace(Function, "apply", classmethod(_placed(apply.__func__)))
    for compiled in (torch._C.ScriptFunction, torch._C.ScriptMethod):  # noqa: SLF001 - their classes
        patches.replace(compiled, "__call__", _placed(compiled.__call__))


def _placed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if torch.compiler.is_compiling() or not EMITTER.live() or untraceable():
            return original(*args, **kwargs)
        outer = LANDMARKS.trace
        trace = trace_text(sys._getframe(1))  # noqa: SLF001 - the cheap way
        if trace is outer or not trace or EMITTER.push is None:
            return original(*args, **kwargs)
        EMITTER.push(trace)
        LANDMARKS.trace = trace
        try:
            return original(*args, **kwargs)
        finally:
            EMITTER.pop()
            LANDMARKS.trace = outer

    return call
