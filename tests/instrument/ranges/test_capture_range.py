"""Tests of pyprof.instrument.ranges.capture_range and hooks."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import pyprof
from pyprof.instrument import lifecycle, range_hooks
from pyprof.instrument.ranges import capture_range, emit

pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")  # a driver too old


def test_profile_is_harmless_without_a_gpu() -> None:
    """The block runs, nothing is printed or raised, exceptions pass."""
    with pyprof.profile():
        pass
    with pytest.raises(KeyError), pyprof.profile():
        raise KeyError


def test_hooks_hear_of_start_step_and_stop_in_order() -> None:
    """Whoever captures is told, also when the block raises, until it takes that back."""
    heard: list[str] = []
    take_back = [
        range_hooks.on_start(lambda: heard.append("start")),
        range_hooks.on_step(lambda: heard.append("step")),
        range_hooks.on_stop(lambda: heard.append("stop")),
    ]

    @pyprof.profile()
    def run() -> None:
        pyprof.step()
        raise KeyError

    with pytest.raises(KeyError):
        run()
    assert heard == ["start", "step", "stop"]
    for undo in take_back:
        undo()
        undo()
    with pyprof.profile():
        pyprof.step()
    assert heard == ["start", "step", "stop"]


def test_a_step_is_marked_for_whoever_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sink of init(), by NVTX under a tool without init(), else for torch.profiler."""
    pushed: list[str] = []
    sink = emit.Sink(pushed.append, lambda: pushed.append("pop"))
    monkeypatch.setattr(capture_range, "tool_listens", lambda: True)
    monkeypatch.setattr(capture_range, "_nvtx", lambda: sink)
    pyprof.step()
    assert pushed == ["pyprof.step", "pop"]
    monkeypatch.setattr(capture_range, "tool_listens", lambda: False)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as records:
        pyprof.step()
    assert "pyprof.step" in {event.key for event in records.key_averages()}
    monkeypatch.setitem(lifecycle._SINKS, "nvtx", lambda: sink)
    pushed.clear()
    pyprof.init(force=True)
    pyprof.step()
    pyprof.stop()
    assert pushed == ["pyprof.step", "pop"]


def test_profile_starts_and_stops_the_cuda_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is CUDA, its profiler runs exactly while the block does."""
    said: list[str] = []
    runtime = SimpleNamespace(
        cudaProfilerStart=lambda: said.append("start"), cudaProfilerStop=lambda: said.append("stop")
    )
    cuda: Any = torch.cuda
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "synchronize", lambda: said.append("wait"))
    monkeypatch.setattr(cuda, "cudart", lambda: runtime)
    with pyprof.profile():
        said.append("work")
    assert said == ["wait", "start", "work", "wait", "stop"]
