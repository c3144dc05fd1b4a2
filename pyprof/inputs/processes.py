"""The cores of this machine: captures are worked on in separate processes.

Uses the standard library's pool, not loky or Pebble: there, too, busy workers outlive a killed
command, and with loky one lost worker takes down the work of all others, so that the monitoring and
retries below would stay.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pyprof import readers
from pyprof.errors import PyprofError
from pyprof.inputs.executor import Failed, Handle, InProcess, name_of, try_item
from pyprof.process import arrow_setup, threads
from pyprof.readers.settings import Carried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.synchronize import Event

    from typing_extensions import Self

A = TypeVar("A")
T = TypeVar("T")

_RETRIES = 2
"""Retries of an item whose process died, with no other item at work."""


class Processes(InProcess):
    """An executor of `workers` processes. If one dies, its item is tried again.

    With the module of its `work`, a command imports everything once, and processes are forks of it:
    two take 0.3 s until they read a capture, instead of 0.5. Only a process with one thread is
    forked, and only a command's: a user's may hold more than that.
    """

    def __init__(
        self, workers: int, *, strict: bool = False, quiet: bool = False, work: str | None = None
    ) -> None:
        super().__init__(strict=strict, quiet=quiet)
        self._workers = workers
        self._work = work
        self._pool: ProcessPoolExecutor | None = None
        self._size = 0
        """Maximum number of processes in the pool."""
        self._begun: Event | None = None
        """Set once any spawned process has started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        self._close(terminate=error is not None)

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on several items at a time; if strict, stop at the first that cannot be read."""
        results: dict[int, T | Failed] = {}
        with self.collecting(items, results, label) as keep, self._terminate_on_error():
            work = partial(_try_item, Carried(function))
            for number in self._map_in_pool(work, items, range(len(items)), keep):
                self._close()  # a process that is alone has all memory
                tries = (self._map_in_pool(work, items, [number], keep) for _ in range(_RETRIES))
                if all(tries):
                    keep(number, Failed(f"{name_of(items[number])}: {_ENDS}"))
        return self.handles(items, results)

    def _map_in_pool(
        self,
        work: Callable[[A], T | Failed],
        items: Sequence[A],
        numbers: Iterable[int],
        keep: Callable[[int, T | Failed], None],
    ) -> list[int]:
        """Work on items; return the numbers of those in progress when a process died.

        No more items are submitted than there are processes, so that those in progress are known.
        """
        waiting, running, lost = deque(numbers), dict[Future[Any], int](), list[int]()
        while waiting or running:
            try:
                while waiting and len(running) < self._workers:
                    pool = self._start_pool(len(items))
                    with _uninterrupted():  # submitting is what starts processes
                        future = pool.submit(work, items[waiting[0]])
                    running[future] = waiting.popleft()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    keep(running.pop(future), result)
            except BrokenProcessPool:  # noqa: PERF203 - a capture takes longer
                self._close()
                if self._begun is not None and not self._begun.is_set():
                    raise PyprofError(_NO_BEGINNING) from None
                lost += running.values()
                running.clear()
        return lost

    def _start_pool(self, captures: int) -> ProcessPoolExecutor:
        """Return a pool with enough processes for `captures` captures."""
        size = min(self._workers, captures)
        if self._pool is None or self._size < size:
            self._close()
            self._size = size
            forks = self._work is not None and _has_one_thread()
            if forks:
                _load(self._work)
                forks = _has_one_thread()  # importing may have started others
            context = multiprocessing.get_context("fork" if forks else "spawn")
            if not forks:
                self._begun = self._begun or context.Event()
            begun = None if forks else self._begun
            cores_each = max(1, threads.available() // size)
            self._pool = ProcessPoolExecutor(size, context, _prepare, (begun, cores_each))
        return self._pool

    def _close(self, *, terminate: bool = False) -> None:
        if self._pool is None:
            return
        if terminate:
            # Public as terminate_workers() from Python 3.14 on.
            for process in list((self._pool._processes or {}).values()):  # noqa: SLF001
                process.terminate()
        self._pool.shutdown(cancel_futures=True)
        self._pool = None

    @contextmanager
    def _terminate_on_error(self) -> Iterator[None]:
        """Terminate the processes if the work is abandoned: they would finish useless work."""
        try:
            yield
        except BaseException:
            self._close(terminate=True)
            raise


def _has_one_thread() -> bool:
    """Whether this process can be forked safely: it has one thread, libraries' included."""
    try:
        return len([*Path("/proc/self/task").iterdir()]) == 1
    except OSError:  # not Linux
        return False


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block Ctrl-C here and in processes started here, until they unblock it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare(begun: Event | None, cores_each: int) -> None:
    """Set a worker up: it uses its share of the cores, and ends with the command.

    It ends without a traceback at Ctrl-C, which the terminal sends to it, too, and when the command
    is killed: else it would wait for work for ever.
    """
    if begun is not None:
        begun.set()
    arrow_setup.prepare()
    threads.limit_cores(cores_each)
    Thread(target=_end_with_command, daemon=True).start()
    signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _end_with_command() -> None:
    if (command := multiprocessing.parent_process()) is not None:
        command.join()
        os._exit(1)


def _load(work: str | None) -> None:
    """Import a command's work, and what reading any capture takes."""
    for module in filter(None, (work, "pyprof.parse.assemble")):
        import_module(module)
    list(readers.readers())


def _try_item(function: Callable[[A], T], item: A) -> T | Failed:
    """Work on one item; exit at Ctrl-C, since a pool would continue with the next item."""
    try:
        return try_item(function, item)
    except (SystemExit, KeyboardInterrupt):
        os._exit(1)


_NO_BEGINNING = (
    "worker processes end before they begin; a script that uses workers must do so under "
    "if __name__ == '__main__':, because each worker imports it"
)

_ENDS = (
    "its worker ended every time, perhaps out of memory; process it on a machine with more memory"
)
