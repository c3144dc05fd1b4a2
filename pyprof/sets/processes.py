"""The cores of this machine: captures are worked on in processes of their own."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, TypeVar

from pyprof.errors import CaptureError, PyprofError
from pyprof.sets.engine import Failed, Handle, Here, attempt, name_of, progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
            waiting = {
                pool.submit(attempt, function, item): number
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
            self._pool = ProcessPoolExecutor(self._workers, mp_context=context)
        return self._pool

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _hopeless(items: Sequence[object], results: Mapping[int, object]) -> str:
    left = [name_of(item) for n, item in enumerate(items) if n not in results]
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return (
        f"{left[0]}{more}: worker processes end before it is done, as they do when memory runs "
        "out; use fewer --workers"
    )
