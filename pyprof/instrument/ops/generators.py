"""Generators and coroutines that are inside a scope only while they run.

Ranges of a thread form a stack, and between two steps of a generator other code runs on the same
thread; so the scope is entered anew for each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.instrument.ops.caller import hide_frames

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    Scope = Callable[[], AbstractContextManager[Any]]


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
    step: Callable[[Any, Any], Any] = _next
    sent: Any = None
    while True:
        try:
            with scope():
                item = step(inner, sent)
        except StopIteration as stop:
            return stop.value
        try:
            step, sent = _send, (yield item)
        except GeneratorExit:
            with scope():
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown in from outside: the original's to handle
            step, sent = _throw, error


@hide_frames
def _next(inner: Any, _: object) -> Any:  # noqa: ANN401 - as the generator
    return next(inner)


@hide_frames
def _send(inner: Any, value: object) -> Any:  # noqa: ANN401 - as the generator
    return next(inner) if value is None else inner.send(value)


@hide_frames
def _throw(inner: Any, error: BaseException | None) -> Any:  # noqa: ANN401 - as the generator
    return inner.throw(error)
