"""Where calls are made of whose work no op's marker tells: a trace marker around each call.

What the engine of autograd, a function with a backward pass of its own, or TorchScript runs is
called in C++, by no op that is wrapped.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function

from pyprof.instrument.caller import unseen
from pyprof.instrument.emit import EMITTER
from pyprof.instrument.op import silent
from pyprof.instrument.ranges import THREAD
from pyprof.instrument.stack import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.patch import Patches


def wrap_places(patches: Patches) -> None:
    """Mark where backward passes, autograd functions and TorchScript are called."""
    engine = "_engine_run_backward"  # what every way to start a backward pass calls
    patches.replace(torch.autograd, engine, _placed(getattr(torch.autograd, engine)))
    patches.replace(Function, "apply", classmethod(_placed(_function_of(vars(Function)["apply"]))))
    for compiled in (torch._C.ScriptFunction, torch._C.ScriptMethod):  # noqa: SLF001 - their classes
        patches.replace(compiled, "__call__", _placed(compiled.__call__))


def _function_of(method: Any) -> Callable[..., Any]:  # noqa: ANN401 - of C from torch 2.15 on
    """Give what a class method calls, with the class as its first argument."""
    if isinstance(method, classmethod):
        return method.__func__

    @unseen
    def call(cls: type, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        return method.__get__(None, cls)(*args, **kwargs)

    return functools.update_wrapper(call, method)


def _placed(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    @unseen
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if torch.compiler.is_compiling() or (push := EMITTER.push) is None or silent():
            return original(*args, **kwargs)
        here, pop = THREAD.here, EMITTER.pop
        outer, trace = here.trace, find(2, here.frame, here.within).text
        if trace is outer or not trace:
            return original(*args, **kwargs)
        push(trace)
        here.trace = trace
        try:
            return original(*args, **kwargs)
        finally:
            here.trace = outer
            pop()

    return call
