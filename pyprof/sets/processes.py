"""The cores of this machine: captures are worked on in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pyprof.errors import CaptureError, PyprofError
from pyprof.sets.engine import Failed, Handle, Here, attempt, name_of, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

A = TypeVar("A")
T = TypeVar("T")

_TRIES = 3
"""How many pools in a row may break without one item done before the work is given up."""


class Processes(Here):
    """An engine of `workers` processes. One that ends costs what it was doing another try."""

    def __init__(self, workers: int, *, strict: bool = False, quiet: bool = False) -> None:
        super().__init__(strict=strict, quiet=quiet)
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on several items at a time; strict stops at the first that cannot be read."""
        results: dict[int, T | Failed] = {}
        tries = 0
        with progress(items, label, quiet=self.quiet) as advance:
            while len(results) < len(items):
                before = len(results)
                self._work(function, items, results, advance)
                tries = 0 if len(results) > before else tries + 1
                if tries == _TRIES:
                    raise PyprofError(_hopeless(items, results))
        return self.handles(items, [results[number] for number in range(len(items))])

    def _work(
        self,
        function: Callable[[A], T],
        items: Sequence[A],
        results: dict[int, T | Failed],
        advance: Callable[[int], None],
    ) -> None:
        """Work on what has no result yet, until all is done or a process ends unasked."""
        try:
            pool = self._started()
            with _uninterrupted():  # submitting is what starts them
                waiting = {
                    pool.submit(_attempt, function, item): number
                    for number, item in enumerate(items)
                    if number not in results
                }
            for future in as_completed(waiting):
                result = results[waiting[future]] = future.result()
                advance(1)
                if self.strict and isinstance(result, Failed):
                    raise CaptureError(result.reason)
        except BrokenProcessPool:
            self._close()

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Threads of Arrow and SQLite do not survive a fork.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(
                self._workers, mp_context=context, initializer=_end_at_interrupt
            )
        return self._pool

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C from here, and from processes that are started here, until they ask for it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_at_interrupt() -> None:
    """Let Ctrl-C, which a terminal sends to workers too, end this one without a traceback."""
    signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _attempt(function: Callable[[A], T], item: A) -> T | Failed:
    """Work on one item; at Ctrl-C clean up and end, for a pool would go on to the next item."""
    try:
        return attempt(function, item)
    except (SystemExit, KeyboardInterrupt):
        os._exit(1)


def _hopeless(items: Sequence[object], results: Mapping[int, object]) -> str:
    left = [name_of(item) for n, item in enumerate(items) if n not in results]
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return (
        f"{left[0]}{more}: worker processes end before it is done, as they do when memory runs "
        "out; use fewer --workers"
    )
