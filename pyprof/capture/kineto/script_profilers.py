"""The torch.profilers that a script starts itself, and the traces that it exports."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.autograd.profiler import profile
from torch.profiler import profile as scheduled

from pyprof.capture.child_captures import called_by_inductor
from pyprof.capture.replacement import replace_attributes

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


_TRACED: Any = next(
    kind for kind in reversed(scheduled.__mro__) if hasattr(kind, "export_chrome_trace")
)
"""The class that defines `torch.profiler.profile.export_chrome_trace`."""


class ScriptTrace:
    """A recording of the script's own profiler, which we export at the end.

    Torch writes a recording once, to the script's path. So what the script exports is copied, and
    only what it never exports is written by us.
    """

    def __init__(self, profiler: Any) -> None:  # noqa: ANN401 - torch.autograd.profiler.profile
        self.shapes, self.stacks = bool(profiler.record_shapes), bool(profiler.with_stack)
        """Whether shapes and stacks were recorded."""
        self._results = profiler.kineto_results
        self._place, self._copied = Path(), False

    def is_of(self, profiler: Any) -> bool:  # noqa: ANN401 - as above
        """Whether the profiler would export this recording."""
        return self._results is not None and profiler.kineto_results is self._results

    def keep(self, exported: Path) -> None:
        """Copy what the script exported, before its next trace replaces it."""
        self._place, self._results = exported, None
        with suppress(OSError):  # without room for a copy, the script's own may stay to the end
            number, name = tempfile.mkstemp(prefix="pyprof-", suffix=".json")
            os.close(number)
            weakref.finalize(self, _remove, name, os.getpid())
            shutil.copyfile(exported, name)
            self._place, self._copied = Path(name), True

    def export_chrome_trace(self, path: str) -> None:
        """Write it once, like one of our own profilers."""
        if self._results is not None:
            self._results.save(path)
        elif self._copied:
            shutil.move(self._place, path)
        else:
            shutil.copyfile(self._place, path)


def _remove(name: str, pid: int) -> None:
    """Remove a file, unless in a forked child of the process that made it."""
    if os.getpid() == pid:
        with suppress(OSError):
            Path(name).unlink()


class ScriptProfilers:
    """Calls back when a profiler of the script is about to start, and when it has ended."""

    def __init__(
        self,
        begins: Callable[[], object],
        ended: Callable[[], object],
        ours: Callable[[], bool] = lambda: False,
        recorded: Callable[[ScriptTrace], object] = lambda _: None,
    ) -> None:
        self.count = 0
        """How many have started."""
        self._begins, self._ended, self._ours, self._recorded = begins, ended, ours, recorded
        self._kept: list[ScriptTrace] = []
        """Traces not exported by the script yet."""
        self._active: set[int] = set()
        self._traces: dict[Path, None] = {}

    @property
    def active(self) -> bool:
        """Whether a profiler of the script is running."""
        return bool(self._active)

    def traces(self) -> tuple[Path, ...]:
        """Return the exported traces that still exist, in order."""
        return tuple(path for path in self._traces if path.is_file())

    def watch(self) -> AbstractContextManager[None]:
        """Intercept every way to start a profiler and export its trace, until the `with` ends."""
        export = "export_chrome_trace"
        return replace_attributes(
            (profile, "_prepare_trace", self._wrap_prepare(profile._prepare_trace)),  # noqa: SLF001 - what every start calls
            (profile, "__exit__", self._wrap_exit(profile.__exit__)),
            (profile, export, self._wrap_export(profile.export_chrome_trace)),
            (_TRACED, export, self._wrap_export(_TRACED.export_chrome_trace)),
        )

    def _wrap_prepare(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        def prepare(profiler: object) -> None:
            if not self._ours():
                self.count += 1
                self._active.add(id(profiler))
                self._begins()
            theirs(profiler)

        return prepare

    def _wrap_exit(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap `__exit__`: even if its profiler is not running, torch would end the one that is."""

        def leave(profiler: Any, *error: object) -> Any:  # noqa: ANN401 - as the original
            if self._ours() or not profiler.enabled:
                return theirs(profiler, *error)
            self._begins()
            try:
                result = theirs(profiler, *error)
                results = profiler.kineto_results  # None if it recorded without Kineto
                began = getattr(results, "trace_start_ns", None)
                began = began or getattr(results, "trace_start_us", None)
                # torch crashes when exporting an empty recording
                recorded = id(profiler) in self._active and began is not None and began() > 0
                if recorded and not called_by_inductor():
                    trace = ScriptTrace(profiler)
                    self._kept.append(trace)
                    self._recorded(trace)
                return result
            finally:
                self._active.discard(id(profiler))
                self._ended()

        return leave

    def _wrap_export(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """Note the path; also that of a compressed trace's temporary file, which will not stay."""

        def export(profiler: Any, path: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the original
            done = theirs(profiler, path, *args, **kwargs)
            exported = Path(os.fsdecode(path)).absolute()
            self._traces[exported] = None
            in_python = kwargs.get("use_python_export") or True in args  # then we still can
            if isinstance(profiler, profile) and exported.is_file() and not in_python:
                for trace in [trace for trace in self._kept if trace.is_of(profiler)]:
                    trace.keep(exported)
                    self._kept.remove(trace)
            return done

        return export
