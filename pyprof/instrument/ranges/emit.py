"""Where ranges go: to NVTX, to torch.profiler, or nowhere.

`EMITTER` is what every wrapped function checks: while its `push` is None, wrappers only call what
they wrap.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from pyprof.instrument.ranges import nvtx_injection
from pyprof.marker import encode_annotation

if TYPE_CHECKING:
    from collections.abc import Callable

_INJECTION = "NVTX_INJECTION64_PATH"
_TOOL_VARIABLES = (
    *(_INJECTION, "NSYS_PROFILING_SESSION_ID", "CUDA_INJECTION64_PATH"),
    *("ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_FORCE_LOAD"),
)
_TOOL_LIBRARIES = ("ToolsInjection", "libcuinj", "TreeLauncher", "libnvperf", "librocprof")
"""Parts of the names of libraries that nsys, nvprof, ncu and rocprofv3 preload."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where ranges go. `push` and `pop` never raise and keep a stack of ranges for each thread."""

    push: Callable[[str], object]
    pop: Callable[[], object]
    recording: Callable[[], bool] | None = None
    """Whether anyone records what is pushed now; None if always."""


class Emitter:
    """The sink in use. Separate attributes, since every call of an op reads them."""

    __slots__ = ("pop", "push", "recording")

    def __init__(self) -> None:
        self.push: Callable[[str], object] | None = None
        self.pop: Callable[[], object] = _nothing
        self.recording: Callable[[], bool] | None = None

    def connect(self, sink: Sink) -> None:
        """Send ranges to this sink from now on."""
        self.pop, self.recording, self.push = sink.pop, sink.recording, sink.push

    def sink(self) -> Sink | None:
        """Return the sink in use."""
        return None if self.push is None else Sink(self.push, self.pop, self.recording)

    def disconnect(self) -> None:
        """Send nothing from now on. Ranges still open can be closed: `pop` stays."""
        self.push = None


def _nothing() -> None:
    pass


EMITTER = Emitter()

# Disconnect in forked children: nsys does not follow forks that do not exec,
# and its locks may be held by threads that the child does not have.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=EMITTER.disconnect)


def tool_listens() -> bool:
    """Whether this process was started under a tool that records NVTX or ROCTx ranges.

    nsys, nvprof, ncu and rocprofv3 inject themselves through the environment, before the process
    starts: so the answer never changes. Wrong if a tool attaches to a running process.
    """
    if any(os.environ.get(name) for name in _TOOL_VARIABLES):
        return True
    preloaded = os.environ.get("LD_PRELOAD", "")
    return any(library in preloaded for library in _TOOL_LIBRARIES)


def nvtx_sink() -> Sink:
    """Return the sink for NVTX: torch's binding, which on ROCm is ROCTx, else the tool's library.

    With neither, the `nvtx` package is used, which registers each distinct text for the life of the
    process.
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
    functions = nvtx_injection.connect(library) if library else None
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
    """Whether a torch.profiler records, this thread or all threads.

    Not by torch._C._autograd._profiler_enabled(): it is False while one records all threads.
    """
    return bool(torch.autograd.profiler._is_profiler_enabled)  # noqa: SLF001 - no public one


def profiler_sink(enabled: Callable[[], bool] = profiler_records) -> Sink:
    """Return the sink for torch.profiler: ranges become annotations in its trace.

    Texts are built only while `enabled` says that it records for us.
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
