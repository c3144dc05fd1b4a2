"""The torch.profilers that a script starts itself, and the traces that it writes of them."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.autograd.profiler import profile
from torch.profiler import profile as scheduled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_TRACED = next(kind for kind in reversed(scheduled.__mro__) if hasattr(kind, "export_chrome_trace"))
"""The class that `torch.profiler.profile` has it from."""


class Others:
    """Tells when a profiler of the script's is about to begin and when it has ended."""

    def __init__(
        self,
        begins: Callable[[], object],
        ended: Callable[[], object],
        ours: Callable[[], bool] = lambda: False,
    ) -> None:
        self.count = 0
        """How many began."""
        self._begins, self._ended, self._ours = begins, ended, ours
        self._active: set[int] = set()
        self._traces: dict[Path, None] = {}

    @property
    def active(self) -> bool:
        """Tell whether one is at work."""
        return bool(self._active)

    def traces(self) -> tuple[Path, ...]:
        """Give the traces that were exported and are still there, in their order."""
        return tuple(path for path in self._traces if path.is_file())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch every way to start one and to export its trace, until the end of the `with`."""
        places: list[tuple[type, str, Callable[[Any], Callable[..., Any]]]] = [
            (profile, "_prepare_trace", self._preparing),
            (profile, "__exit__", self._leaving),
            (profile, "export_chrome_trace", self._exporting),
            (_TRACED, "export_chrome_trace", self._exporting),
        ]
        before = [(home, name, getattr(home, name)) for home, name, _ in places]
        for home, name, wrapper in places:
            setattr(home, name, wrapper(getattr(home, name)))
        try:
            yield
        finally:
            for home, name, theirs in before:
                setattr(home, name, theirs)

    def _preparing(self, theirs: Callable[[object], None]) -> Callable[[object], None]:
        def prepare(profiler: object) -> None:
            if not self._ours():
                self.count += 1
                self._active.add(id(profiler))
                self._begins()
            theirs(profiler)

        return prepare

    def _leaving(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """Step aside also for one that is not at work: torch would end whichever is."""

        def leave(profiler: Any, *error: object) -> Any:  # noqa: ANN401 - as the original
            if self._ours() or not profiler.enabled:
                return theirs(profiler, *error)
            self._begins()
            try:
                return theirs(profiler, *error)
            finally:
                self._active.discard(id(profiler))
                self._ended()

        return leave

    def _exporting(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """Note where to; of a compressed trace the draft, too, which will not stay."""

        def export(profiler: object, path: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
            done = theirs(profiler, path, *args, **kwargs)
            self._traces[Path(os.fsdecode(path)).absolute()] = None
            return done

        return export
