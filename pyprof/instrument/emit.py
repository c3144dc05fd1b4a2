"""Where range texts go: NVTX, torch.profiler, or nowhere.

Knows nothing of what the texts say. `EMITTER` is the one place that every wrapped function looks
at: while its `push` is None, wrapped functions do nothing but call what they wrap.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pyprof.instrument import injection
from pyprof.marker import encode_annotation

if TYPE_CHECKING:
    from collections.abc import Callable

_INJECTION = "NVTX_INJECTION64_PATH"
_TOOL_VARIABLES = (_INJECTION, "NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH")
_TOOL_LIBRARIES = ("ToolsInjection", "libcuinj", "TreeLauncher", "libnvperf")
"""Parts of the names of libraries that nsys, nvprof and ncu preload."""


@dataclass(frozen=True, slots=True)
class Sink:
    """One way out. `push` and `pop` never raise and keep a stack of ranges for each thread."""

    push: Callable[[str], object]
    pop: Callable[[], object]
    recording: Callable[[], bool] | None = None
    """Says whether anyone takes what is pushed now; None where that is always so."""


class Emitter:
    """The sink in use. An attribute each, since they are read at every call of an op."""

    __slots__ = ("pop", "push", "recording")

    def __init__(self) -> None:
        self.push: Callable[[str], object] | None = None
        self.pop: Callable[[], object] = _nothing
        self.recording: Callable[[], bool] | None = None

    def connect(self, sink: Sink) -> None:
        """Send texts to this sink from now on."""
        self.pop, self.recording, self.push = sink.pop, sink.recording, sink.push

    def disconnect(self) -> None:
        """Send nothing from now on. Ranges still open can be closed: `pop` stays."""
        self.push = None

    def live(self) -> bool:
        """Tell whether a text pushed now would reach anyone."""
        return self.push is not None and (self.recording is None or self.recording())


def _nothing() -> None:
    pass


EMITTER = Emitter()

# A forked child has its parent's tool only by name: nsys does not follow forks that do not exec,
# and its locks may be held by threads that the child lacks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=EMITTER.disconnect)


def tool_listens() -> bool:
    """Tell whether this process was started under a tool that takes NVTX ranges.

    nsys, nvprof and ncu put themselves into a process through its environment, before it starts:
    so the answer cannot change later. Wrong where a tool attaches to a running process.
    """
    if any(os.environ.get(name) for name in _TOOL_VARIABLES):
        return True
    preloaded = os.environ.get("LD_PRELOAD", "")
    return any(library in preloaded for library in _TOOL_LIBRARIES)


def nvtx_sink() -> Sink:
    """Give the way to NVTX: CUDA builds of torch bring it, else the tool's own library is called.

    Where neither is there, the `nvtx` package is used, which registers each distinct text for as
    long as the process lives.
    """
    return _torch_sink() or _injected_sink() or _package_sink()


def _torch_sink() -> Sink | None:
    try:
        from torch._C import _nvtx  # noqa: PLC0415 - absent in builds without CUDA
    except ImportError:
        return None
    return Sink(_nvtx.rangePushA, _nvtx.rangePop)


def _injected_sink() -> Sink | None:
    library = os.environ.get(_INJECTION)
    functions = injection.connect(library) if library else None
    if functions is None:
        return None
    push_bytes, pop = functions

    def push(text: str) -> None:
        push_bytes(text.encode())

    return Sink(push, pop)


def _package_sink() -> Sink:
    try:
        import nvtx  # noqa: PLC0415 - only where nothing better is there
    except ImportError:
        return Sink(lambda _: None, _nothing)
    return Sink(nvtx.push_range, nvtx.pop_range)


class _OpenRanges(threading.local):
    def __init__(self) -> None:
        self.stack: list[object] = []


def profiler_records() -> bool:
    """Tell whether a torch.profiler is on, of this thread or of all.

    Not by torch._C._autograd._profiler_enabled(): it is False while one records all threads.
    """
    return bool(torch.autograd.profiler._is_profiler_enabled)  # noqa: SLF001 - no public one


def profiler_sink(enabled: Callable[[], bool] = profiler_records) -> Sink:
    """Give the way to torch.profiler: ranges arrive in its trace as annotations.

    Texts are built only while one records for us, as `enabled` says.
    """
    open_ranges = _OpenRanges()
    annotation = torch._C._profiler._RecordFunctionFast  # noqa: SLF001 - record_function() goes through the dispatcher

    def push(text: str) -> None:
        entered = annotation(encode_annotation(text)) if enabled() else None
        if entered is not None:
            entered.__enter__()
        open_ranges.stack.append(entered)

    def pop() -> None:
        entered = open_ranges.stack.pop() if open_ranges.stack else None
        if entered is not None:
            entered.__exit__(None, None, None)  # type: ignore[attr-defined]

    return Sink(push, pop, enabled)
