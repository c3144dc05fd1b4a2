"""A recording ends before it uses up the memory."""

import pytest

torch = pytest.importorskip("torch")

from pyprof.capture.kineto import memory_guard
from tests.capture.conftest import Capture
from tests.capture.kineto.captured import WAIT_FOR_THE_GUARD, ran


def test_a_recording_that_takes_too_much_memory_ends(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = iter([0, *[1 << 60] * 1000])
    monkeypatch.setattr(
        memory_guard.MemoryGuard.__init__,
        "__kwdefaults__",
        {"measure": lambda: next(grown), "interval_s": 0.01},
    )
    outcome = capture(f"{WAIT_FOR_THE_GUARD}\ntorch.ones(3).sin()\nsys.exit(4)", whole=True)
    assert outcome.code == 4
    assert any("a quarter of the free memory" in note for note in outcome.notes)
    assert ran(outcome) == {"tanh"}
