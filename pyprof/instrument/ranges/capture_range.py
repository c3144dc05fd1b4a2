"""The range to capture, and the steps in it: `pyprof.profile()` and `pyprof.step()`.

Profilers that we run register callbacks for the start and end of the range and for each step.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.profiler import record_function
from torch.profiler import ProfilerAction

from pyprof.instrument.ranges.emit import EMITTER, Sink, nvtx_sink, tool_listens
from pyprof.instrument.ranges.stream_capture import capturing
from pyprof.marker import STEP_END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Schedule = Callable[[int], ProfilerAction]


class Hook:
    """Callbacks without arguments, called in the order of registration."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], object]] = []

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def add(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Register a callback; return a function that unregisters it."""
        self._callbacks.append(callback)

        def take_back() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return take_back

    def __call__(self) -> None:
        """Call back."""
        for callback in tuple(self._callbacks):
            callback()


range_start, range_stop = Hook(), Hook()
"""Called when `pyprof.profile()` is entered, and when it is left."""
step_end = Hook()
"""Called at each `pyprof.step()`; a callback may wait for the GPU."""


class RecordingWindows:
    """Starts and stops a recording step by step, by a schedule of torch.profiler.

    Each recorded step gets the same range as under torch.profiler.
    """

    def __init__(
        self,
        schedule: Schedule,
        start: Callable[[], object],
        stop: Callable[[], object],
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._schedule = schedule
        self._start, self._stop, self._prepare = start, stop, prepare
        self._count = 0
        self._on = False
        self._mark: record_function | None = None
        self._enter()

    def step(self) -> None:
        """End a step."""
        saved = self._schedule(self._count) is ProfilerAction.RECORD_AND_SAVE
        self._count += 1
        self._leave()
        if saved or not self._is_recording():
            self._end()
        self._enter()

    def finish(self) -> None:
        """End the current window, if any."""
        self._leave()
        self._end()

    def _is_recording(self) -> bool:
        action = self._schedule(self._count)
        return action in {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}

    def _enter(self) -> None:
        if self._is_recording():
            if not self._on:
                self._on = True
                self._start()
            self._mark = record_function(f"ProfilerStep#{self._count}")
            self._mark.__enter__()  # type: ignore[no-untyped-call]
        elif self._schedule(self._count) is ProfilerAction.WARMUP:
            self._prepare()

    def _leave(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None

    def _end(self) -> None:
        if self._on:
            self._on = False
            self._stop()


@contextmanager
def profile(*, schedule: Schedule | None = None) -> Iterator[None]:
    """Mark the range to capture, as `pyprof.profile` without a name; also as a decorator."""
    if schedule is None:
        _start()
        try:
            yield
        finally:
            _stop()
        return
    windows = RecordingWindows(schedule, _start, _stop)
    take_back = step_end.add(windows.step)
    try:
        yield
    finally:
        take_back()
        windows.finish()


def step() -> None:
    """Mark the end of a training step: reports count and compare steps, `--steps` chooses them.

    Any profiler that records now has the mark in its capture. Works inside any range, and costs
    next to nothing if no profiler records.
    """
    if capturing():  # a step that is captured into a CUDA graph ends when it is replayed
        return
    # an empty range: one that began with the step could not be nested
    sink = EMITTER.sink() or (_nvtx() if tool_listens() else None)
    if sink is not None:
        sink.push(STEP_END)
        sink.pop()
    else:
        with record_function(STEP_END):
            pass
    step_end()


@cache
def _nvtx() -> Sink:
    return nvtx_sink()


def _start() -> None:
    range_start()
    if cuda := _cuda():
        cuda.synchronize()
        cuda.cudart().cudaProfilerStart()


def _stop() -> None:
    if cuda := _cuda():
        cuda.synchronize()
        cuda.cudart().cudaProfilerStop()
    range_stop()


def _cuda() -> Any:  # noqa: ANN401 - torch.cuda, or None
    return torch.cuda if torch.cuda.is_available() else None
