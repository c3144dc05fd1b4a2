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
    from collections.abc import Callable

    Schedule = Callable[[int], ProfilerAction]
    from collections.abc import Iterator


class RangeHooks:
    """Lists of callbacks without arguments, called in the order of registration."""

    def __init__(self) -> None:
        self._start: list[Callable[[], object]] = []
        self._stop: list[Callable[[], object]] = []
        self._step: list[Callable[[], object]] = []

    def on_start(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when `pyprof.profile()` is entered. Returns a function that unregisters."""
        return _add(self._start, callback)

    def on_stop(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when `pyprof.profile()` is left. Returns a function that unregisters."""
        return _add(self._stop, callback)

    def on_step(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back at each `pyprof.step()`. Returns a function that unregisters."""
        return _add(self._step, callback)

    @property
    def has_listeners(self) -> bool:
        """Whether a profiler of ours waits for the range to start."""
        return bool(self._start)

    def start(self) -> None:
        """Call the callbacks of the start of the range."""
        _call(self._start)

    def stop(self) -> None:
        """Call the callbacks of its end."""
        _call(self._stop)

    def step(self) -> None:
        """Call the callbacks of the end of a step, which may wait for the GPU."""
        _call(self._step)


def _add(
    callbacks: list[Callable[[], object]], callback: Callable[[], object]
) -> Callable[[], None]:
    callbacks.append(callback)

    def take_back() -> None:
        if callback in callbacks:
            callbacks.remove(callback)

    return take_back


def _call(callbacks: list[Callable[[], object]]) -> None:
    for callback in tuple(callbacks):
        callback()


range_hooks = RangeHooks()


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
        if saved or not self._records():
            self._end()
        self._enter()

    def finish(self) -> None:
        """End the current window, if any."""
        self._leave()
        self._end()

    def _records(self) -> bool:
        action = self._schedule(self._count)
        return action in {ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE}

    def _enter(self) -> None:
        if self._records():
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
    """Mark the range to capture: `with pyprof.profile(): ...`, also as a decorator.

    Starts and stops the CUDA profiler if there is a GPU (`nsys --capture-range cudaProfilerApi`
    waits for that), and the profiler that `pyprof capture` runs. Without either, it does nothing.

    `schedule`, such as torch.profiler.schedule(wait=2, warmup=1, active=3, repeat=2), decides for
    each step whether to record it: only the windows that it opens are captured.
    Steps end with `pyprof.step()`.
    """
    if schedule is None:
        _start()
        try:
            yield
        finally:
            _stop()
        return
    windows = RecordingWindows(schedule, _start, _stop)
    take_back = range_hooks.on_step(windows.step)
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
    _mark_end()
    range_hooks.step()


def _mark_end() -> None:
    """Emit an empty range: one that began with the step could not be nested."""
    sink = EMITTER.sink() or (_nvtx() if tool_listens() else None)
    if sink is None:
        with record_function(STEP_END):
            return
    sink.push(STEP_END)
    sink.pop()


@cache
def _nvtx() -> Sink:
    return nvtx_sink()


def _start() -> None:
    range_hooks.start()
    if cuda := _cuda():
        cuda.synchronize()
        cuda.cudart().cudaProfilerStart()


def _stop() -> None:
    if cuda := _cuda():
        cuda.synchronize()
        cuda.cudart().cudaProfilerStop()
    range_hooks.stop()


def _cuda() -> Any:  # noqa: ANN401 - torch.cuda, or None
    return torch.cuda if torch.cuda.is_available() else None
