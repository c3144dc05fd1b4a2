"""The range to profile under rocprofv3: ROCTx calls in place of the CUDA profiler's.

With --selected-regions rocprofv3 records only between roctxProfilerResume and roctxProfilerPause.
On ROCm torch.cuda.profiler.start() does nothing, so that it can be that call.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import torch.cuda.profiler

from pyprof.capture.kineto.recording import script_range
from pyprof.capture.replacement import replace_attributes
from pyprof.process.messages import say

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
def torch_regions(*, of_script: bool) -> Iterator[None]:
    """Have torch.cuda.profiler.start() and stop() begin and end a region of ROCTx.

    With `of_script`, so do all other ways to start and stop the script's range; one range may use
    several. Else only these two calls do, which the counting of steps makes.
    """
    calls = _calls()
    if calls is None:
        say("there is no ROCTx library here, so that no range can be recorded; use --all")
        yield
        return
    region = _Region(*calls)
    profiler = torch.cuda.profiler
    with (
        script_range(region.start, region.stop)
        if of_script
        else replace_attributes((profiler, "start", region.start), (profiler, "stop", region.stop))
    ):
        yield


class _Region:
    """Resumes and pauses the profiler; a repeated call has no effect."""

    def __init__(self, resume: Callable[[int], object], pause: Callable[[int], object]) -> None:
        self._resume, self._pause = resume, pause
        self._is_on = False

    def start(self) -> None:
        if not self._is_on:
            self._is_on = True
            self._resume(_ALL_THREADS)

    def stop(self) -> None:
        if self._is_on:
            self._is_on = False
            if torch.cuda.is_available():  # what was launched belongs to the region
                torch.cuda.synchronize()
            self._pause(_ALL_THREADS)
