"""A guard against recordings that use up all memory."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SHARE = 0.25
"""Share of the memory free at the start. Writing the trace takes once or twice as much again."""

_INTERVAL_S = 0.25
_UNKNOWN_FREE = 8 << 30  # if the system does not report it
_TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
"""Returns freed memory to the system, in C libraries that have it."""


def free_bytes(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the free memory; a guess if the system does not report it."""
    try:
        lines = meminfo.read_text().splitlines()
        # a cache of files, which fills most of a machine's memory, is given up when it is needed
        return next(
            int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")
        )
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_FREE


def resident_bytes() -> int:
    """Return the memory of this process; its peak if the system does not report that of now."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return peak_bytes()
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes() -> int:
    """Return the peak memory of this process; 0 if the system does not report it."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class MemoryGuard:
    """A thread that calls back once the process has grown by more than a limit."""

    def __init__(
        self,
        limit_bytes: int,
        exceeded: Callable[[], object],
        *,
        measure: Callable[[], int] = resident_bytes,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._limit = measure() + limit_bytes
        self._limit_if_trimmed = self._limit - limit_bytes // 2
        self._exceeded = exceeded
        self._measure = measure
        self._interval_s = interval_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="pyprof-guard", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching; safe from any thread, and more than once."""
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(self._interval_s):
            if self._measure() <= self._limit:
                continue
            # What a profiler records lies between tensors that are freed soon. The C library keeps
            # the holes and seldom finds use for them: far more memory than was recorded.
            if _TRIM is not None:
                _TRIM(0)
            if self._measure() > self._limit_if_trimmed:
                self._exceeded()
                return
