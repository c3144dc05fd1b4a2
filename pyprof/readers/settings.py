"""Files that a user names besides captures, for the readers."""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    _Path = str | os.PathLike[str]

A = TypeVar("A")
T = TypeVar("T")

CAPTURE_TRACES = "capture_traces"
"""Frameworks' name for the folder, next to a trace, with traces of the capture of its graphs."""

OURS = ".graphs"
"""Precedes the suffix of a trace of the capture of graphs that `pyprof capture` wrote."""


def own_captures_path(path: Path) -> Path:
    """Return where `pyprof capture` writes how the graphs of a trace were captured."""
    stem, dot, suffix = path.name.partition(".")
    return path.parent / CAPTURE_TRACES / f"{stem}{OURS}{dot}{suffix}"


_FILES: ContextVar[tuple[tuple[str, ...], str | None]] = ContextVar("files", default=((), None))
"""Graph captures and counters."""


def graph_captures() -> tuple[str, ...]:
    """Return the files and folders of traces in which graphs were captured."""
    return _FILES.get()[0]


def counters() -> str | None:
    """Return the file of counters that were measured in another run."""
    return _FILES.get()[1]


@contextmanager
def using(graph_captures: Sequence[str], counters: str | None = None) -> Iterator[None]:
    """Read captures with these graph captures, not those next to them, and these counters."""
    token = _FILES.set((tuple(graph_captures), counters))
    try:
        yield
    finally:
        _FILES.reset(token)


def using_files(
    graph_captures: _Path | Iterable[_Path] = (), counters: _Path | None = None
) -> AbstractContextManager[None]:
    """As `using`, but for paths from the user, made absolute for other processes."""
    if isinstance(graph_captures, (str, os.PathLike)):
        graph_captures = (graph_captures,)
    absolute = [os.path.abspath(os.fspath(each)) for each in graph_captures]  # noqa: PTH100 - any path
    measured = None if counters is None else os.path.abspath(os.fspath(counters))  # noqa: PTH100 - as above
    return using(absolute, measured)


class Carried(Generic[A, T]):
    """A function bound to the current settings, so that it can run in another process."""

    def __init__(self, function: Callable[[A], T]) -> None:
        self.function = function
        self.files = _FILES.get()

    def __call__(self, item: A) -> T:
        """Call the function with the settings at the time when it was bound."""
        with using(*self.files):
            return self.function(item)
