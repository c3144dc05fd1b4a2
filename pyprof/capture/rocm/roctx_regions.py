"""The range to profile under rocprofv3: ROCTx's calls in place of those of CUDA's profiler.

With --selected-regions rocprofv3 records between roctxProfilerResume and roctxProfilerPause alone.
On ROCm torch.cuda.profiler.start() does nothing, so that it can be that call.
"""

from __future__ import annotations

import ctypes
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch.cuda.profiler

from pyprof.cli import say
from pyprof.instrument.ranges.capture_range import range_hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LIBRARIES = (None, "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1")
"""Where the calls are: in what rocprofv3 has preloaded, else by name."""
_ALL_THREADS = 0


def _calls() -> tuple[Callable[[int], object], Callable[[int], object]] | None:
    """Return roctxProfilerResume and roctxProfilerPause; None if this machine has none."""
    for name in _LIBRARIES:
        with suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            return library.roctxProfilerResume, library.roctxProfilerPause
    return None


@contextmanager
def torch_regions() -> Iterator[None]:
    """Have the script's ranges, of torch.cuda.profiler and pyprof.profile(), be those of ROCTx."""
    calls = _calls()
    if calls is None:
        say("there is no ROCTx library here, so that no range can be recorded; use --all")
        yield
        return
    resume, pause = calls

    def start() -> None:
        resume(_ALL_THREADS)

    def stop() -> None:
        if torch.cuda.is_available():  # what was launched belongs to the range
            torch.cuda.synchronize()
        pause(_ALL_THREADS)

    profiler: Any = torch.cuda.profiler
    with ExitStack() as stack:
        for name, call in (("start", start), ("stop", stop)):
            stack.callback(setattr, profiler, name, getattr(profiler, name))
            setattr(profiler, name, call)
        stack.callback(range_hooks.on_start(start))
        stack.callback(range_hooks.on_stop(stop))
        yield
