"""Where captures are worked on: in this process, in several, or on a cluster.

A plain function works on each capture; its result stays where it was computed. Small results are
merged in a tree whose shape depends only on their number, so that the result is bit-identical on
any executor.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pyprof.errors import CaptureError, RecordsError
from pyprof.process import progress
from pyprof.process.messages import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyprof.inputs.dask_cluster import Cluster

A = TypeVar("A")
T = TypeVar("T")
R = TypeVar("R")

_MIN_SHOWN = 2
"""Captures from which on a progress bar is shown."""


@dataclass(frozen=True, slots=True)
class Handle(Generic[T]):
    """The result of one item's work, perhaps on another machine."""

    item: Any
    """The item that it was made from."""
    value: Any
    """For the executor: the result, or a reference to it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A capture that could not be read, as the result of its work."""

    reason: str
    """One line: which capture, what is wrong, what to do."""


Executor: TypeAlias = "InProcess | Cluster"
"""Where the work is done. Functions must be importable by name."""


def try_item(function: Callable[[A], T], item: A) -> T | Failed:
    """Work on one item; return a failure to read it, which stops no other item."""
    try:
        return function(item)
    except (CaptureError, RecordsError) as error:
        return Failed(str(error))


def name_of(item: object) -> str:
    """Return the user's name of an item."""
    return str(getattr(item, "url", item))


def item_progress(
    items: Sequence[object], label: str, *, quiet: bool
) -> AbstractContextManager[Callable[[int], None]]:
    """Show a progress bar of items."""
    return progress.progress_bar(len(items), label, len(items) + 1 if quiet else _MIN_SHOWN)


_MAX_NAMED = 20
"""Maximum number of failed captures named individually; others are only counted."""


def successes(
    items: Sequence[object],
    values: Sequence[Any],
    failures: Sequence[Failed | None],
    *,
    strict: bool,
) -> list[Handle[Any]]:
    """Report the failures and return handles of the rest. Shared by all executors."""
    failed = [failure for failure in failures if failure is not None]
    if failed and (strict or len(failed) == len(items)):
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise CaptureError(failed[0].reason + more)
    warn([failure.reason for failure in failed[:_MAX_NAMED]])
    if failed:
        warn([f"{len(failed)} of {len(items)} captures could not be read and are left out"])
    return [
        Handle(item, value)
        for item, value, failure in zip(items, values, failures, strict=True)
        if failure is None
    ]


def tree(merge: Callable[[T, T], T], values: Iterable[T]) -> T:
    """Merge neighbours level by level; a leftover moves up."""
    level = list(values)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [*(merge(left, right) for left, right in pairs), *level[len(level) & ~1 :]]
    return level[0]


class InProcess:
    """Works in this process; its results are plain values."""

    def __init__(self, *, strict: bool = False, quiet: bool = False) -> None:
        self.strict, self.quiet = strict, quiet

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on every item; return the results of those that could be read, in order.

        Each other item is named on stderr. Raises CaptureError if none could be read or, if strict,
        for the first that could not.
        """
        results: dict[int, T | Failed] = {}
        with self.collecting(items, results, label) as keep:
            for number, item in enumerate(items):
                keep(number, try_item(function, item))
        return self.handles(items, results)

    @contextmanager
    def collecting(
        self, items: Sequence[A], results: dict[int, T | Failed], label: str
    ) -> Iterator[Callable[[int, T | Failed], None]]:
        """Yield a function that stores the result of item N and advances the progress bar."""
        with item_progress(items, label, quiet=self.quiet) as advance:

            def keep(number: int, result: T | Failed) -> None:
                results[number] = result
                advance(1)
                if self.strict and isinstance(result, Failed):
                    raise CaptureError(result.reason)

            yield keep

    def handles(self, items: Sequence[A], results: Mapping[int, T | Failed]) -> list[Handle[T]]:
        """Return handles of values, stored by the numbers of their items."""
        values = [results[number] for number in range(len(items))]
        failures = [value if isinstance(value, Failed) else None for value in values]
        return successes(items, values, failures, strict=self.strict)

    def reduce(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> T:
        """Merge results, neighbour with neighbour, until one is left; there must be one."""
        return tree(merge, self.gather(handles))

    def reduce_and_finish(
        self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]], finish: Callable[[T], R]
    ) -> R:
        """Merge as `reduce`, and return `finish` of the result, called where the result is."""
        return finish(self.reduce(merge, handles))

    def gather(self, handles: Sequence[Handle[T]]) -> Iterator[T]:
        """Yield the results themselves, in order."""
        return (handle.value for handle in handles)


@contextmanager
def open_executor(
    workers: int | str = 1,
    *,
    strict: bool = False,
    quiet: bool = False,
    work: str | None = None,
) -> Iterator[Executor]:
    """Yield an executor: `workers` processes, this process for 1, or the Dask cluster it names.

    `strict`: a capture that cannot be read is an error; `quiet`: no progress bar. `work` is the
    module of a command's work: processes are forks of this one if that is safe.
    """
    if isinstance(workers, str):
        from pyprof.inputs.dask_cluster import Cluster  # noqa: PLC0415 - needs the dask extra

        with Cluster(workers, strict=strict, quiet=quiet) as cluster:
            yield cluster
    elif workers > 1:
        from pyprof.inputs.processes import Processes  # noqa: PLC0415 - often not needed

        with Processes(workers, strict=strict, quiet=quiet, work=work) as processes:
            yield processes
    else:
        yield InProcess(strict=strict, quiet=quiet)
