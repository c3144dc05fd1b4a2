"""Work before a process ends: normally, by `os._exit`, or by becoming another program."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from pyprof.capture.replacement import replace_attributes
from pyprof.process import signals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Show = Callable[[BaseException], object]


@contextmanager
def on_exit(
    left: Callable[[int], int], replaced: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call `left` with the exit code before `os._exit`, which then exits with its result.

    Call `replaced` before `os.exec*` runs another program in this process. Only one of them is
    called, once, and none in a forked child.
    """
    pid = os.getpid()
    leave = os._exit
    asked: list[None] = []

    def first() -> bool:
        if asked or os.getpid() != pid:
            return False
        asked.append(None)
        return True

    def leaving(status: int) -> NoReturn:
        if first():
            status = left(status)
            sys.stderr.flush()
            sys.stdout.flush()
        leave(status)

    def replacing(execute: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        def run(path: Any, *args: Any, **kwargs: Any) -> NoReturn:  # noqa: ANN401 - as the original
            if (isinstance(path, int) or os.access(path, os.X_OK)) and first():
                replaced()
            execute(path, *args, **kwargs)

        return run

    with replace_attributes(
        (os, "_exit", leaving),
        (os, "execv", replacing(os.execv)),
        (os, "execve", replacing(os.execve)),
    ):
        yield


class Ending:
    """What Python does after a script's last line, done before the process ends.

    It waits for threads and executors, then calls the functions registered with `atexit`. That work
    and output are the script's, and come before our report.
    """

    def __init__(self) -> None:
        self._threads = {*threading.enumerate()}
        self._functions: list[tuple[Callable[..., object], tuple[Any, ...], Mapping[str, Any]]] = []
        self._theirs = atexit.register, atexit.unregister

    def __enter__(self) -> Ending:  # noqa: PYI034 - `typing.Self` is new in Python 3.11
        """Collect functions registered with `atexit` from now on."""
        atexit.register, atexit.unregister = self._register, self._unregister
        return self

    def __exit__(self, *error: object) -> None:
        """Hand functions not called yet to Python's `atexit`."""
        atexit.register, atexit.unregister = self._theirs
        for function, args, kwargs in self._functions:
            atexit.register(function, *args, **kwargs)

    def finish(self, show: Show) -> None:
        """Wait and call them; `show` prints an error, and the next one follows, as in Python."""
        with _shut_executors() as wait_for_executors:
            try:
                wait_for_executors()
                mine = {*self._threads, threading.current_thread()}
                while alive := [t for t in threading.enumerate() if not (t.daemon or t in mine)]:
                    alive[0].join()
            except KeyboardInterrupt as stopped:
                show(stopped)
            while self._functions:
                function, args, kwargs = self._functions.pop()
                try:
                    function(*args, **kwargs)
                except signals.Ended:
                    raise
                except BaseException as error:  # noqa: BLE001 - of the script, which ends anyway
                    sys.stderr.write(f"Exception ignored in atexit callback: {function!r}\n")
                    show(error)

    def _register(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as atexit.register
        if not callable(function):
            raise TypeError("the first argument must be callable")
        self._functions.append((function, args, kwargs))
        return function

    def _unregister(self, function: Any, /) -> None:  # noqa: ANN401 - as atexit.unregister
        self._functions = [entry for entry in self._functions if entry[0] != function]
        self._theirs[1](function)


_EXECUTORS = (
    ("concurrent.futures.process", "_threads_wakeups", "_global_shutdown"),
    ("concurrent.futures.thread", "_threads_queues", "_shutdown"),
)
"""Modules of executors, and their names for the workers and for the flag that Python is ending."""


@contextmanager
def _shut_executors() -> Iterator[Callable[[], None]]:
    """Yield a function that waits for executors and shuts them down, until the `with` ends."""
    shut: list[tuple[Any, str]] = []

    def wait() -> None:
        for name, workers, flag in _EXECUTORS:
            module: Any = sys.modules.get(name)
            if module is not None and getattr(module, workers):
                shut.append((module, flag))
                module._python_exit()  # noqa: SLF001 - what Python calls

    try:
        yield wait
    finally:  # our own report has work for executors
        for module, flag in shut:
            setattr(module, flag, False)
