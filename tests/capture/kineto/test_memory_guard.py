"""A recording ends before it uses up the memory."""

import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.kineto import memory_guard
from tests.capture.conftest import Capture
from tests.capture.kineto.captured import WAIT_FOR_THE_GUARD, grow_at_once, ran


def test_a_recording_that_takes_too_much_memory_ends(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow_at_once(monkeypatch)
    outcome = capture(f"{WAIT_FOR_THE_GUARD}\ntorch.ones(3).sin()\nsys.exit(4)", whole=True)
    assert outcome.code == 4
    assert any("a quarter of the free memory" in note for note in outcome.notes)
    assert ran(outcome) == {"tanh"}


def test_memory_that_goes_back_to_the_system_ends_no_recording() -> None:
    exceeded = threading.Event()
    at_start, grown, trimmed, kept = 1000, 1101, 1050, 1051
    measured = iter([at_start, grown, trimmed, grown, kept])
    memory_guard.MemoryGuard(
        100, exceeded.set, measure=lambda: next(measured), interval_s=0.001
    ).start()
    assert exceeded.wait(60)
    assert not list(measured)


def test_a_cache_of_files_is_free_memory(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 900 kB\nMemFree: 10 kB\nMemAvailable: 800 kB\n")
    assert memory_guard.free_bytes(meminfo) == 800 << 10
