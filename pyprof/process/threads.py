"""Helper threads: none in a process that shares the cores with others like it.

Two threads on one core only get in each other's way: reading and parsing take 5 % more processor
time with them, and 10 % more memory, since the C library keeps some for each thread.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")

_alone: list[bool] = []


def available() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_cores(cores: int) -> None:
    """Use at most `cores` cores from now on, here and in Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    pa.set_cpu_count(cores)
    if cores == 1:
        _alone.append(True)


def thread_pool(threads: int | None = None) -> Executor:
    """Return a thread pool or, with one core, an executor that works on submission."""
    return _Here() if _alone else ThreadPoolExecutor(threads)


class _Here(Executor):
    """Works in the calling thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run the function now; its exception is kept for the result, an exit is raised at once."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)
        return future
