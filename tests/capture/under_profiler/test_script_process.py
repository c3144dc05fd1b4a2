"""The script's process under a profiler: when it starts and stops the range."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import pyprof
from pyprof.capture.request import StepsToRecord
from pyprof.capture.under_profiler.script_process import _capture_steps, _capture_until_a_range


@pytest.mark.parametrize("ranges", [0, 2])
def test_recording_restarts_with_the_scripts_range(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ranges: int
) -> None:
    told: list[str] = []
    waiting: list[Callable[[], object]] = []
    runtime = SimpleNamespace(
        cudaProfilerStart=partial(told.append, "start"),
        cudaProfilerStop=partial(told.append, "stop"),
    )
    monkeypatch.setattr(torch.cuda, "cudart", lambda: runtime)
    monkeypatch.setattr(torch.cuda, "_lazy_call", waiting.append)
    monkeypatch.setattr(torch.cuda, "synchronize", partial(told.append, "wait"))
    gave_way = tmp_path / "gave way"
    _capture_until_a_range(gave_way)
    assert told == []
    (begin,) = waiting
    begin()
    for _ in range(ranges):
        runtime.cudaProfilerStart()  # what every way to start a range calls
        runtime.cudaProfilerStop()
    assert told == ["start", *(["wait", "stop"] if ranges else []), *["start", "stop"] * ranges]
    assert gave_way.exists() is bool(ranges)


@pytest.mark.parametrize(
    ("steps", "recorded"),
    [
        (StepsToRecord(1, 1, 2), [2, 3]),
        (StepsToRecord(0, 0, 1), [0]),
        (StepsToRecord(0, 1, 1, 2), [1, 3]),
        (StepsToRecord(1, 0, 1, 0), [1, 3, 5, 7]),
        (StepsToRecord(0, 6, 5), [6, 7]),  # the script ends before the window does
    ],
)
def test_the_range_is_on_for_the_requested_steps(
    monkeypatch: pytest.MonkeyPatch, steps: StepsToRecord, recorded: list[int]
) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", partial(told.append, "wait"))
    for name in ("start", "stop"):
        monkeypatch.setattr(torch.cuda.profiler, name, partial(told.append, name))
    found = []
    with ExitStack() as stack:
        _capture_steps(steps, stack)
        for step in range(8):
            torch.cuda.profiler.start()  # a range of the script's own, which does not count
            if told and told[-1] == "start":
                found.append(step)
            pyprof.step()
    assert found == recorded
    assert told == ["wait", "start", "wait", "stop"] * (len(told) // 4)


def test_without_cuda_nothing_is_started() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    with ExitStack() as stack:
        _capture_steps(StepsToRecord(0, 0, 1), stack)
        pyprof.step()
