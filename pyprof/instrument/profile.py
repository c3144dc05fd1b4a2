"""The range to capture, and the steps in it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from pyprof.instrument.hooks import range_hooks

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def profile() -> Iterator[None]:
    """Mark the range to capture: `with pyprof.profile(): ...`, also as a decorator.

    Starts and stops the CUDA profiler where there is a GPU (what `nsys --capture-range
    cudaProfilerApi` waits for), and whatever `pyprof capture` runs. Without both it does nothing.
    """
    cuda: Any = torch.cuda if torch.cuda.is_available() else None
    range_hooks.start()
    if cuda:
        cuda.synchronize()
        cuda.cudart().cudaProfilerStart()
    try:
        yield
    finally:
        if cuda:
            cuda.synchronize()
            cuda.cudart().cudaProfilerStop()
        range_hooks.stop()


def step() -> None:
    """Say that a step of training ended, for captures that count steps."""
    range_hooks.step()
