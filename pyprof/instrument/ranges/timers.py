"""Timers of named ranges: host time, and GPU time by events, without waiting for the GPU.

An event is recorded on the current stream at each end of a range; their distance is read once both
have completed, at the latest when someone asks for the timings.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

import torch

from pyprof.instrument.ranges.stream_capture import capturing

if TYPE_CHECKING:
    import pandas as pd

ON = [False]
"""Whether annotations are timed by default; a list, to be changed in place."""

_MAX_PENDING = 4096
"""Pairs of events not yet read; with more, the oldest are waited for."""
_NS_PER_MS = 1e6


@dataclass(slots=True)
class Running:
    """A range being timed."""

    name: str
    started_ns: int
    event: Any = None


@dataclass(slots=True)
class _Times:
    """Times of one name on one clock."""

    count: int = 0
    total_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None

    def add(self, elapsed_ns: int) -> None:
        self.count += 1
        self.total_ns += elapsed_ns
        self.min_ns = elapsed_ns if self.min_ns is None else min(self.min_ns, elapsed_ns)
        self.max_ns = elapsed_ns if self.max_ns is None else max(self.max_ns, elapsed_ns)

    def columns(self, prefix: str) -> dict[str, float | None]:
        counted = self.count > 0
        return {
            f"{prefix}total_ns": self.total_ns if counted else None,
            f"{prefix}mean_ns": self.total_ns / self.count if counted else None,
            f"{prefix}min_ns": self.min_ns,
            f"{prefix}max_ns": self.max_ns,
        }


@dataclass(slots=True)
class _Book:
    """All timings. The lock is held only to record or to add up."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    host: dict[str, _Times] = field(default_factory=dict)
    gpu: dict[str, _Times] = field(default_factory=dict)
    pending: list[tuple[str, Any, Any]] = field(default_factory=list)


_BOOK = _Book()


def begin(name: str) -> Running:
    """Start timing a range of this name."""
    event = _record_event()
    return Running(name, time.perf_counter_ns(), event)


def end(running: Running) -> None:
    """Stop timing and record the result."""
    elapsed_ns = time.perf_counter_ns() - running.started_ns
    event = _record_event() if running.event is not None else None
    with _BOOK.lock:
        _BOOK.host.setdefault(running.name, _Times()).add(elapsed_ns)
        if event is not None:
            _BOOK.pending.append((running.name, running.event, event))
            if len(_BOOK.pending) >= _MAX_PENDING:
                _collect(wait=False)
                _collect(wait=len(_BOOK.pending) >= _MAX_PENDING // 2)


def _record_event() -> Any:  # noqa: ANN401 - a torch.cuda.Event or None
    """Record an event now; None if CUDA is not in use yet, or captures a graph."""
    cuda: Any = torch.cuda
    if not cuda.is_initialized() or capturing():
        return None
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


def _collect(*, wait: bool) -> None:
    """Collect events that have completed, or wait for all. The caller holds the lock."""
    left = []
    for name, first, last in _BOOK.pending:
        if wait:
            last.synchronize()
        if last.query():
            elapsed_ns = round(first.elapsed_time(last) * _NS_PER_MS)
            _BOOK.gpu.setdefault(name, _Times()).add(elapsed_ns)
        else:
            left.append((name, first, last))
    _BOOK.pending[:] = left


def timings() -> pd.DataFrame:
    """Return the timings so far, one row per name, the longest first.

    Columns: `count`; host `total_ns`, `mean_ns`, `min_ns`, `max_ns`; the same with `gpu_` before
    them, empty (NaN) where no GPU was in use. Waits for the GPU where its times are still due.
    """
    import pandas as pd  # noqa: PLC0415 - a training script needs none

    with _BOOK.lock:
        _collect(wait=True)
        rows = {}
        for name, host in _BOOK.host.items():
            gpu = _BOOK.gpu.get(name, _Times())
            rows[name] = {"count": host.count, **host.columns(""), **gpu.columns("gpu_")}
    columns = ["count", *_Times().columns(""), *_Times().columns("gpu_")]
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    frame = frame.astype({"count": "int64"} | dict.fromkeys(columns[1:], "float64"))
    frame.index.name = "name"
    return frame.sort_values("total_ns", ascending=False, kind="stable")


def print_timings(file: TextIO | None = None) -> None:
    """Print `timings()` as a table in milliseconds; by default to standard output."""
    from tabulate import tabulate  # noqa: PLC0415 - a training script needs none

    frame = timings()
    times = [column for column in frame.columns if column != "count"]
    shown = frame.assign(**{column: frame[column] / _NS_PER_MS for column in times})
    shown = shown.rename(columns={column: column.removesuffix("_ns") + "_ms" for column in times})
    shown = shown.dropna(axis="columns", how="all")
    table = tabulate(shown.to_records(), headers=["name", *shown.columns], floatfmt=".3f")
    nothing = "nothing was timed: call pyprof.init(timers=True) before pyprof.annotate(...)"
    (file or sys.stdout).write((nothing if frame.empty else table) + "\n")
