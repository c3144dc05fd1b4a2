"""Threads beside the one that works: none in a process that shares the cores with others like it.

Two threads on one core only get in each other's way: reading and parsing cost a twentieth more
processor time with them, and a tenth more memory, of which the C library keeps some for each.
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
    """Give the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_cores(cores: int) -> None:
    """Use no more cores than these from now on, neither here nor in Arrow."""
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    pa.set_cpu_count(cores)
    if cores == 1:
        _alone.append(True)


def thread_pool(threads: int | None = None) -> Executor:
    """Give what works beside this thread, or, with one core, in it as soon as work is submitted."""
    return _Here() if _alone else ThreadPoolExecutor(threads)


class _Here(Executor):
    """Works in the thread that asks for it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Work, and give the result; what ends the process is raised at once."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            future.set_exception(error)
        return future
