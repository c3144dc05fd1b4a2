"""Ranges that the user names: `pyprof.annotate`, as a context manager and as a decorator.

A decorated generator or coroutine is inside its range only while it runs: ranges of a thread form a
stack, and between two steps of a generator other code runs on the same thread; so the range is
entered anew for each step.
"""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ranges import open_ranges, timers
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.marker import encode_layer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    Scope = Callable[[], AbstractContextManager[Any]]


Function = TypeVar("Function", bound="Callable[..., Any]")


class annotate:  # noqa: N801 - used as a function
    """Name a part of the program: `with pyprof.annotate("attention"): ...`, or as a decorator.

    The name becomes a layer of everything launched inside. With `timer=True`, or after
    `init(timers=True)`, it is timed as well. Decorated coroutines and generators count only while
    they run, not while they wait; a `with` block must not contain an `await` or `yield`. A
    decorator without a name uses that of the function.
    """

    __slots__ = ("_open", "_timer", "name")

    def __init__(self, name: str = "", *, timer: bool | None = None) -> None:
        self.name = name
        self._timer = timer
        self._open: list[tuple[object, timers.Running | None]] = []
        """The range and the running timer of each time that it was entered."""

    def __enter__(self) -> annotate:  # noqa: PYI034 - Self is newer than Python 3.10
        if torch.compiler.is_compiling():
            return self
        timed = timers.ON[0] if self._timer is None else self._timer
        opened = None
        if EMITTER.push is not None:
            opened = open_ranges.open_range(encode_layer(_printable(self.name)))
        self._open.append((opened, timers.begin(self.name) if timed else None))
        return self

    def __exit__(self, *_error: object) -> None:
        if torch.compiler.is_compiling():
            return
        opened, running = self._open.pop()
        if running is not None:
            timers.end(running)
        if opened is not None:
            open_ranges.close_range(opened)

    def __call__(self, function: Function) -> Function:
        """Decorate a function, coroutine function, generator function or async generator."""
        name = self.name or function.__qualname__

        def scope() -> annotate:
            return annotate(name, timer=self._timer)

        if inspect.iscoroutinefunction(function):
            wrapper = coroutine_function(function, scope)
        elif inspect.isasyncgenfunction(function):
            wrapper = async_generator_function(function, scope)
        elif inspect.isgeneratorfunction(function):
            wrapper = generator_function(function, scope)
        else:

            @hide_frames
            def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
                with scope():
                    return function(*args, **kwargs)

        return wraps(function)(wrapper)  # type: ignore[return-value]


def _printable(name: str) -> str:
    """Replace what some tool cannot take: control characters, and what is not UTF-8."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else "?" for char in name)


def generator_function(function: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """Return a generator function that runs each step of the original inside a scope."""

    @hide_frames
    def start(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:  # noqa: ANN401 - as the function
        return (yield from _steps(function(*args, **kwargs), scope))

    return start


def coroutine_function(function: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """Return a coroutine function that runs each step of the original inside a scope."""

    @hide_frames
    async def start(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
        return await _Steps(function(*args, **kwargs), scope)

    return start


def async_generator_function(function: Callable[..., Any], scope: Scope) -> Callable[..., Any]:
    """Return an async generator function that runs each step of the original inside a scope."""

    @hide_frames
    async def start(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:  # noqa: ANN401 - as the function
        original = function(*args, **kwargs)
        step = original.__anext__()
        while True:
            try:
                item = await _Steps(step, scope)
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                await _Steps(original.aclose(), scope)
                raise
            except BaseException as error:  # noqa: BLE001 - thrown in from outside: the original's to handle
                step = original.athrow(error)
            else:
                step = original.asend(sent)

    return start


class _Steps:
    """An awaitable that runs another one inside a scope."""

    def __init__(self, awaitable: Awaitable[Any], scope: Scope) -> None:
        self._awaitable = awaitable
        self._scope = scope

    @hide_frames
    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self._awaitable.__await__(), self._scope)


@hide_frames
def _steps(inner: Any, scope: Scope) -> Generator[Any, Any, Any]:  # noqa: ANN401 - a generator or what looks like one
    """Drive a generator, each step inside a scope, and return its result."""
    resume: Callable[[], Any] = partial(next, inner)
    while True:
        try:
            with scope():
                item = resume()
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield item
        except GeneratorExit:
            with scope():
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in from outside: the original's to handle
            resume = partial(inner.throw, error)
        else:
            resume = partial(next, inner) if sent is None else partial(inner.send, sent)
