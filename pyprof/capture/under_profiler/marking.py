"""Markers in a script under a profiler: PyProf's own, and torch's if available."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyprof.capture.replacement import replace_attributes

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess


def mark_process(process: BaseProcess) -> Marked | None:
    """Return what a process is to run instead, for `replaced_run`, so that it emits markers.

    None for forked processes, which nsys does not follow.
    """
    how = getattr(process, "_start_method", None) or multiprocessing.get_start_method()
    return None if how == "fork" else Marked(process.run)


@dataclass(frozen=True, slots=True)
class Marked:
    """A child process's work with markers on; pickled or forked."""

    run: Callable[[], object]

    def __call__(self) -> object:
        """Run it."""
        if "torch" not in sys.modules:
            return self.run()
        with ExitStack() as stack:
            mark(stack, Marked.__call__)
            return self.run()


def mark(stack: ExitStack, runner: Callable[..., Any]) -> None:
    """Turn on PyProf's markers, and PyTorch's own if available."""
    import torch  # noqa: PLC0415 - the user's own

    from pyprof import instrument  # noqa: PLC0415 - it imports torch
    from pyprof.capture.nsight.nvtx_ranges import NvtxRanges  # noqa: PLC0415 - as above
    from pyprof.instrument.ranges.emit import nvtx_sink  # noqa: PLC0415 - as above
    from pyprof.instrument.ranges.stack import begin_at  # noqa: PLC0415

    begin_at(runner.__code__)
    sink = nvtx_sink()
    stack.enter_context(instrument.marked(sink))
    if not hasattr(torch._C, "_nvtx"):  # noqa: SLF001 - what torch itself asks
        stack.enter_context(NvtxRanges(sink).installed())
    if torch.cuda.is_available():
        _emit(stack)


def _emit(stack: ExitStack) -> None:
    """Have torch emit its own ranges, except while the script's torch.profiler is on.

    The two exclude each other: torch would raise inside the script. Both are per thread.
    """
    import torch  # noqa: PLC0415

    from pyprof.capture.kineto.script_profilers import ScriptProfilers  # noqa: PLC0415 - it imports torch

    theirs: Any = torch.autograd.profiler.emit_nvtx
    emitting = stack.enter_context(ExitStack())

    thread = threading.get_ident()

    def emit() -> None:
        if threading.get_ident() == thread and not others.active:
            emitting.enter_context(theirs(record_shapes=True))

    def pause() -> None:
        if threading.get_ident() == thread:
            emitting.close()

    others = ScriptProfilers(pause, emit)
    emit()
    stack.enter_context(others.watch())
    on_already = (torch.autograd.profiler, "emit_nvtx", lambda *_, **__: nullcontext())
    stack.enter_context(replace_attributes(on_already))
