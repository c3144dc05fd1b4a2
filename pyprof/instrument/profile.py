"""The range to capture, and the steps in it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.hooks import range_hooks
from pyprof.instrument.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.instrument.windows import Schedule


@contextmanager
def profile(*, schedule: Schedule | None = None) -> Iterator[None]:
    """Mark the range to capture: `with pyprof.profile(): ...`, also as a decorator.

    Starts and stops the CUDA profiler where there is a GPU (what `nsys --capture-range
    cudaProfilerApi` waits for), and whatever `pyprof capture` runs. Without both it does nothing.

    `schedule`, such as torch.profiler.schedule(wait=2, warmup=1, active=3, repeat=2), tells of each
    step whether to record it: the windows that it opens are captured, not what lies between.
    Steps end with `pyprof.step()`.
    """
    if schedule is None:
        _start()
        try:
            yield
        finally:
            _stop()
        return
    windows = Windows(schedule, _start, _stop)
    take_back = range_hooks.on_step(windows.step)
    try:
        yield
    finally:
        take_back()
        windows.finish()


def step() -> None:
    """Say that a step of training ended, for captures that count steps."""
    range_hooks.step()


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
