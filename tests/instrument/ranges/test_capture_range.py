from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.profiler import ProfilerAction

import pyprof
from pyprof.instrument import lifecycle, range_start, range_stop, step_end
from pyprof.instrument.ranges import capture_range, emit
from pyprof.instrument.ranges.capture_range import RecordingWindows

pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")  # a driver too old


def test_profile_is_harmless_without_a_gpu() -> None:
    with pyprof.profile():
        pass
    with pytest.raises(KeyError), pyprof.profile():
        raise KeyError


def test_hooks_run_at_start_step_and_stop_in_order() -> None:
    heard: list[str] = []
    take_back = [
        range_start.add(lambda: heard.append("start")),
        step_end.add(lambda: heard.append("step")),
        range_stop.add(lambda: heard.append("stop")),
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
    """By init()'s sink, by NVTX under a tool without init(), else for torch.profiler."""
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


_OFF = (ProfilerAction.NONE, ProfilerAction.WARMUP)
_ON = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


@given(st.lists(st.sampled_from([*_OFF, *_ON]), min_size=1, max_size=9))
def test_windows_follow_the_schedule(actions: list[ProfilerAction]) -> None:
    """A step is recorded if the schedule says so; a window ends where it is saved."""
    heard: list[str] = []
    windows = RecordingWindows(
        lambda step: actions[step] if step < len(actions) else ProfilerAction.NONE,
        lambda: heard.append("["),
        lambda: heard.append("]"),
    )
    for step in range(len(actions)):
        heard.append(str(step))
        windows.step()
    windows.finish()
    expected = ""
    for step, action in enumerate(actions):
        after_save = step > 0 and actions[step - 1] is ProfilerAction.RECORD_AND_SAVE
        was_on = step > 0 and actions[step - 1] not in _OFF
        expected += "]" * (was_on and (action in _OFF or after_save))
        expected += "[" * (action not in _OFF and (not was_on or after_save)) + str(step)
    assert "".join(heard) == expected + "]" * (actions[-1] not in _OFF)


def test_preparation_before_a_window() -> None:
    heard: list[str] = []
    actions = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD]
    windows = RecordingWindows(
        actions.__getitem__,
        lambda: heard.append("start"),
        lambda: heard.append("stop"),
        lambda: heard.append("prepare"),
    )
    for step in range(2):
        heard.append(str(step))
        windows.step()
    windows.finish()
    assert heard == ["0", "prepare", "1", "start", "stop"]
