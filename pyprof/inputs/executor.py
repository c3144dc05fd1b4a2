"""Work on many captures: one plain function a capture, here, in processes, or on a cluster.

What a capture's work gives stays where it was done. Small results are merged in a tree whose
shape depends only on their number, so that the result is bit-identical on any executor.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pyprof import cli
from pyprof.errors import CaptureError, RecordsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

A = TypeVar("A")
T = TypeVar("T")
R = TypeVar("R")

_LEAST = 2
"""Captures from which a progress bar is worth its line."""


@dataclass(frozen=True, slots=True)
class Handle(Generic[T]):
    """The result of one item's work, which may be on another machine."""

    item: Any
    """What it was made from."""
    place: Any
    """For the executor alone: the result, or where it is."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A capture that could not be read, as the result of its work."""

    reason: str
    """One line: which capture, what is wrong, what to do."""


class Executor(Protocol):
    """Where the work is done. Functions must be importable by name: plain ones of a module."""

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on every item, and give the results of those that could be read, in order.

        Each other item is named on stderr. Raises CaptureError where none could be read, or, when
        strict, for the first that could not.
        """

    def reduce(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> T:
        """Merge results, neighbour with neighbour, until one is left; there must be one."""

    def reduce_and_finish(
        self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]], finish: Callable[[T], R]
    ) -> R:
        """Merge as `reduce` does, and give what `finish` makes of it where the results are."""

    def gather(self, handles: Sequence[Handle[T]]) -> Iterator[T]:
        """Give the results themselves, one by one, in order."""


def try_item(function: Callable[[A], T], item: A) -> T | Failed:
    """Work on one item; a capture that cannot be read is a value and stops no other."""
    try:
        return function(item)
    except (CaptureError, RecordsError) as error:
        return Failed(str(error))


def name_of(item: object) -> str:
    """Give what a user calls an item: of a member its capture."""
    return str(getattr(item, "url", item))


def progress(
    items: Sequence[object], label: str, *, quiet: bool
) -> AbstractContextManager[Callable[[int], None]]:
    """Show how many items are done, as `cli.progress` does."""
    return cli.progress(len(items), label, len(items) + 1 if quiet else _LEAST)


_MOST_NAMED = 20
"""Captures that are named one by one; of more, only their number is given."""


def successes(
    items: Sequence[object],
    places: Sequence[Any],
    failures: Sequence[Failed | None],
    *,
    strict: bool,
) -> list[Handle[Any]]:
    """Tell what failed and give handles of what did not. Shared by all executors."""
    failed = [failure for failure in failures if failure is not None]
    if failed and (strict or len(failed) == len(items)):
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise CaptureError(failed[0].reason + more)
    cli.warn([failure.reason for failure in failed[:_MOST_NAMED]])
    if failed:
        cli.warn([f"{len(failed)} of {len(items)} captures could not be read and are left out"])
    return [
        Handle(item, place)
        for item, place, failure in zip(items, places, failures, strict=True)
        if failure is None
    ]


def tree(merge: Callable[[T, T], T], values: Iterable[T]) -> T:
    """Merge neighbours level by level; one that is left over moves up."""
    level = list(values)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [*(merge(left, right) for left, right in pairs), *level[len(level) & ~1 :]]
    return level[0]


class InProcess:
    """The executor of results that are plain values in this process; it works in this process."""

    def __init__(self, *, strict: bool = False, quiet: bool = False) -> None:
        self.strict, self.quiet = strict, quiet

    def map(self, function: Callable[[A], T], items: Sequence[A], label: str) -> list[Handle[T]]:
        """Work on one item after the other; strict stops at the first that cannot be read."""
        results: dict[int, T | Failed] = {}
        with self.collecting(items, results, label) as keep:
            for number, item in enumerate(items):
                keep(number, try_item(function, item))
        return self.handles(items, results)

    @contextmanager
    def collecting(
        self, items: Sequence[A], results: dict[int, T | Failed], label: str
    ) -> Iterator[Callable[[int, T | Failed], None]]:
        """Give what keeps the result of an item, by its number, and shows how many there are."""
        with progress(items, label, quiet=self.quiet) as advance:

            def keep(number: int, result: T | Failed) -> None:
                results[number] = result
                advance(1)
                if self.strict and isinstance(result, Failed):
                    raise CaptureError(result.reason)

            yield keep

    def handles(self, items: Sequence[A], results: Mapping[int, T | Failed]) -> list[Handle[T]]:
        """Make handles of values, kept by the numbers of their items."""
        places = [results[number] for number in range(len(items))]
        failures = [place if isinstance(place, Failed) else None for place in places]
        return successes(items, places, failures, strict=self.strict)

    def reduce(self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]]) -> T:
        """Merge here."""
        return tree(merge, self.gather(handles))

    def reduce_and_finish(
        self, merge: Callable[[T, T], T], handles: Sequence[Handle[T]], finish: Callable[[T], R]
    ) -> R:
        """Merge and finish here."""
        return finish(self.reduce(merge, handles))

    def gather(self, handles: Sequence[Handle[T]]) -> Iterator[T]:
        """Give the values."""
        return (handle.place for handle in handles)
