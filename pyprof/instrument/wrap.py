"""Markers around the user's functions, backward passes, TorchScript, and coalesced collectives."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import Function

from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ops.op import WITH_STACK, is_disabled, isinstance_op, make_op
from pyprof.instrument.ops.process_groups import coalesced_text
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.open_ranges import THREAD
from pyprof.instrument.ranges.stack import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyprof.instrument.ops.patch import Patches


_CALLER = 3
"""Depth, as `find` counts it, of the caller of the wrapper that calls `call_inside`."""


@hide_frames
def call_inside(text: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it returns
    """Call a function inside a trace marker, if not already open, and the marker `text`, if any.

    To be called by the wrapper that replaces the function, while ranges are recorded.
    """
    push, here, pop = EMITTER.push, THREAD.here, EMITTER.pop
    if push is None:
        return function(*args, **kwargs)
    stack = find(_CALLER, here.frame, here.within).text if WITH_STACK[0] else ""
    outer = here.trace
    texts = [each for each in ("" if stack is outer else stack, text) if each]
    for each in texts:
        push(each)
    here.trace = stack or outer
    try:
        return function(*args, **kwargs)
    finally:
        here.trace = outer
        for _ in texts:
            pop()


WRAPPED: list[tuple[object, str]] = []
"""What the user passed to `pyprof.wrap`, whether or not anything is wrapped now."""


def wrap_one(home: object, name: str, patches: Patches) -> None:
    """Replace a function, method, static or class method by an Op."""
    attribute: Any = inspect.getattr_static(home, name)
    is_unbound = isinstance(attribute, (staticmethod, classmethod))
    inner = attribute.__func__ if is_unbound else getattr(home, name)
    if isinstance_op(inner):
        return
    mod = home.__name__ if isinstance(home, (type, ModuleType)) else type(home).__name__
    op: Any = make_op(inner, home, name, mod)
    if is_unbound:
        op = type(attribute)(op)
    patches.replace(home, name, op)


def wrap_call_sites(patches: Patches) -> None:
    """Put trace markers around backward passes, autograd functions and TorchScript.

    Their work is launched from C++, by no wrapped op.
    """
    engine = "_engine_run_backward"  # what every way to start a backward pass calls
    patches.replace(torch.autograd, engine, _wrap_in_trace(getattr(torch.autograd, engine)))
    apply = _function_of(vars(Function)["apply"])
    patches.replace(Function, "apply", classmethod(_wrap_in_trace(apply)))
    for compiled in (torch._C.ScriptFunction, torch._C.ScriptMethod):  # noqa: SLF001 - their classes
        patches.replace(compiled, "__call__", _wrap_in_trace(compiled.__call__))


def _function_of(method: Any) -> Callable[..., Any]:  # noqa: ANN401 - written in C from torch 2.15 on
    """Return the function of a class method, with the class as first argument."""
    if isinstance(method, classmethod):
        return method.__func__

    @hide_frames
    def call(cls: type, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        return method.__get__(None, cls)(*args, **kwargs)

    return functools.update_wrapper(call, method)


def _wrap_in_trace(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    @hide_frames
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        if torch.compiler.is_compiling() or is_disabled():
            return original(*args, **kwargs)
        return call_inside("", original, *args, **kwargs)

    return call


_NAME = "_coalescing_manager"


def wrap_coalesced(patches: Patches) -> None:
    """Mark what `torch.distributed._coalescing_manager` launches on exit."""
    if not torch.distributed.is_available():
        return
    homes: tuple[Any, ...] = (torch.distributed.distributed_c10d, torch.distributed)
    original = getattr(homes[0], _NAME, None)
    if original is None:  # not public
        return

    @functools.wraps(original)
    def manager(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
        return _Coalesced(original(*args, **kwargs), args[0] if args else kwargs.get("group"))

    for home in homes:
        if hasattr(home, _NAME):
            patches.replace(home, _NAME, manager)


class _Coalesced:
    """torch's context manager, with a marker around its exit."""

    def __init__(self, inner: AbstractContextManager[object], group: object) -> None:
        self._inner = inner
        self._group = group

    def __enter__(self) -> object:
        return self._inner.__enter__()

    def __exit__(self, *error: Any) -> bool | None:  # noqa: ANN401, PYI036 - handed on
        text = "" if EMITTER.push is None or is_disabled() else coalesced_text(self._group)
        close = self._inner.__exit__
        return call_inside(text, close, *error) if text else close(*error)
