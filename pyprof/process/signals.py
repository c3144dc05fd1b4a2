"""Signals that ask a process to end: it unwinds, and leaves nothing half done."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    Handler = Callable[[int, FrameType | None], object]

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a process at once by default. Python raises KeyboardInterrupt for SIGINT."""


class Ended(SystemExit):
    """A signal asked the process to end; `code` is the exit code that shells report for it."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.name = signal.Signals(number).name


INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def ending() -> Iterator[None]:
    """Raise `Ended` at SIGTERM and SIGHUP if the default would end the process.

    SIGINT raises KeyboardInterrupt, as always in Python. Forked children keep the defaults.
    """
    taken = [n for n in _RAISES if _in_main() and signal.getsignal(n) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _RAISES[number])
    try:
        yield
    finally:
        for number in taken:
            if signal.getsignal(number) is _RAISES[number]:
                signal.signal(number, signal.SIG_DFL)


def _in_main() -> bool:
    """Whether this is the thread in which Python handles signals."""
    return threading.current_thread() is threading.main_thread()


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    raise Ended(number)


_RAISES: dict[int, Handler] = {
    signal.SIGINT: signal.default_int_handler,
    **dict.fromkeys(_ENDING, _raise),
}


def _restore_defaults() -> None:
    for number in _ENDING:
        if signal.getsignal(number) is _raise:
            signal.signal(number, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restore_defaults)


def quietly_until_begun() -> None:
    """Let Ctrl-C end the process without a traceback before and after `ending`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def handling_stop(tell: Handler) -> Iterator[None]:
    """Call `tell` on SIGINT, SIGTERM and SIGHUP instead of Python's handlers."""
    before: dict[int, Handler] = {}
    for number in (signal.SIGINT, *_ENDING):
        handler = signal.getsignal(number) if _in_main() else None
        if callable(handler):
            before[number] = handler
            signal.signal(number, tell)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def postponed() -> Iterator[None]:
    """Postpone signals to the end of the `with`.

    A second Ctrl-C takes effect at once.
    """
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, *_ENDING)}
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        again = number == signal.SIGINT and number in noted
        noted.append(number)
        if again:
            noted.clear()
            _handle(handlers[number], number, frame)

    try:
        with handling_stop(note):
            yield
    finally:
        for number in noted[:1]:
            _handle(handlers[number], number, None)


def _handle(handler: object, number: int, frame: FrameType | None) -> None:
    if callable(handler):
        handler(number, frame)
