"""A recording ends before it uses up the memory."""

import pytest

torch = pytest.importorskip("torch")

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
