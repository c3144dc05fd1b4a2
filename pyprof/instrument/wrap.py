"""A call of code that is no op of torch's, inside a marker of ours."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function

from pyprof.instrument.ops.caller import unseen
from pyprof.instrument.ops.op import WITH_STACK, isinstance_op, make_op, silent
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.open_ranges import THREAD
from pyprof.instrument.ranges.stack import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.ops.patch import Patches

_CALLER = 3
"""Whose stack is written: what called the wrapper that calls us, as `find` counts frames."""


@unseen
def call_inside(text: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it gives
    """Call a function inside the marker `text`, and of the stack where that is not open already.

    To be called from what stands in the place of the function, while ranges are written.
    """
    push, here, pop = EMITTER.push, THREAD.here, EMITTER.pop
    if push is None:
        return function(*args, **kwargs)
    stack = find(_CALLER, here.frame, here.within).text if WITH_STACK[0] else ""
    outer = here.trace
    texts = (text,) if stack is outer or not stack else (stack, text)
    for each in texts:
        push(each)
    here.trace = stack or outer
    try:
        return function(*args, **kwargs)
    finally:
        here.trace = outer
        for _ in texts:
            pop()


# The user's own ops: `pyprof.wrap`.


WRAPPED: list[tuple[object, str]] = []
"""What the user wants wrapped, whether or not anything is wrapped now."""


def wrap_asked(patches: Patches) -> None:
    """Wrap all that was asked for."""
    for home, name in WRAPPED:
        wrap_one(home, name, patches)


def wrap_one(home: object, name: str, patches: Patches) -> None:
    """Put an Op in the place of a function, method, static or class method."""
    attribute: Any = inspect.getattr_static(home, name)
    inner = (
        attribute.__func__
        if isinstance(attribute, (staticmethod, classmethod))
        else getattr(home, name)
    )
    if isinstance_op(inner):
        return
    mod = home.__name__ if isinstance(home, (type, ModuleType)) else type(home).__name__
    op: Any = make_op(inner, home, name, mod)
    if isinstance(attribute, (staticmethod, classmethod)):
        op = type(attribute)(op)
    patches.replace(home, name, op)


# Where calls are made of whose work no op's marker tells: a trace marker around each call.
#
# What the engine of autograd, a function with a backward pass of its own, or TorchScript runs is
# called in C++, by no op that is wrapped.


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
