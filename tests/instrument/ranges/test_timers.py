from __future__ import annotations

import io
import threading
import time
from typing import Any

import pytest
import torch

import pyprof
from pyprof.instrument.ranges import timers

pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")  # a driver too old


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    return now


def test_timings_of_names(clock: list[int]) -> None:
    for name, elapsed in (("a", 10), ("b", 500), ("a", 30)):
        with pyprof.annotate(name, timer=True):
            clock[0] += elapsed
    frame = pyprof.timings()
    assert frame.index.tolist() == ["b", "a"]
    a = frame.loc["a"]
    found = [a[c] for c in ("count", "total_ns", "mean_ns", "min_ns", "max_ns")]
    assert found == [2, 40, 20, 10, 30]


def test_gpu_times_are_unknown_without_a_gpu(clock: list[int]) -> None:
    with pyprof.annotate("a", timer=True):
        clock[0] += 1
    if not torch.cuda.is_available():
        assert pyprof.timings()["gpu_total_ns"].isna().all()


def test_off_means_nothing_is_timed() -> None:
    with pyprof.annotate("a"):
        pass
    assert len(pyprof.timings()) == 0
    assert list(pyprof.timings().columns)[:2] == ["count", "total_ns"]


def test_init_switches_all_on_and_one_off() -> None:
    pyprof.init(timers=True)
    with pyprof.annotate("yes"), pyprof.annotate("no", timer=False):
        pass
    pyprof.stop()
    with pyprof.annotate("later"):
        pass
    assert pyprof.timings().index.tolist() == ["yes"]


def test_an_exception_is_timed_as_well(clock: list[int]) -> None:
    @pyprof.annotate("a", timer=True)
    def fails() -> None:
        clock[0] += 7
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        fails()
    assert pyprof.timings().loc["a", "total_ns"] == 7


def test_threads_add_up() -> None:
    def work() -> None:
        for _ in range(100):
            with pyprof.annotate("shared", timer=True):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pyprof.timings().loc["shared", "count"] == 400


def test_print_timings(clock: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    with pyprof.annotate("step", timer=True):
        clock[0] += 2_500_000
    pyprof.print_timings()
    elsewhere = io.StringIO()
    pyprof.print_timings(elsewhere)
    out = capsys.readouterr().out
    assert out == elsewhere.getvalue()
    assert "step" in out
    assert "2.500" in out
    assert "total_ms" in out


def test_without_timings_the_remedy_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    pyprof.print_timings()
    assert "init(timers=True)" in capsys.readouterr().out


class Event:
    """A CUDA event that knows its time, and is past only once it was waited for."""

    clock_ms = 0.0

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at_ms = 0.0
        self.past = False

    def record(self) -> None:
        self.at_ms = Event.clock_ms

    def synchronize(self) -> None:
        self.past = True

    def query(self) -> bool:
        return self.past

    def elapsed_time(self, other: Event) -> float:
        return other.at_ms - self.at_ms


@pytest.fixture
def _events(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda: Any = torch.cuda
    monkeypatch.setattr(cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(cuda, "Event", Event)


@pytest.mark.usefixtures("_events")
def test_gpu_times_come_from_events() -> None:
    for elapsed in (0.5, 1.5):
        with pyprof.annotate("gemm", timer=True):
            Event.clock_ms += elapsed
    assert len(timers._BOOK.pending) == 2
    row = pyprof.timings().loc["gemm"]
    assert [row["gpu_total_ns"], row["gpu_min_ns"], row["gpu_max_ns"]] == [2e6, 0.5e6, 1.5e6]
    assert timers._BOOK.pending == []


@pytest.mark.usefixtures("_events")
def test_events_not_yet_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that never reads them neither grows without end nor loses time."""
    monkeypatch.setattr(timers, "_MAX_PENDING", 10)
    for _ in range(35):
        with pyprof.annotate("many", timer=True):
            Event.clock_ms += 1
    assert len(timers._BOOK.pending) < 10
    assert pyprof.timings().loc["many", "gpu_total_ns"] == 35e6
