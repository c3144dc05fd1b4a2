"""Which steps of a trainer are the range to capture."""

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

from pyprof.instrument import range_start, range_stop, step_end
from pyprof.trainers.training_range import TrainingRange

pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")  # a driver too old


@pytest.fixture
def heard() -> Iterator[list[str]]:
    heard: list[str] = []
    take_back = [
        range_start.add(lambda: heard.append("start")),
        step_end.add(lambda: heard.append("step")),
        range_stop.add(lambda: heard.append("stop")),
    ]
    yield heard
    for undo in take_back:
        undo()


def _train(steps: TrainingRange, count: int, validates_after: int = 0) -> None:
    for number in range(1, count + 1):
        steps.step_begins()
        steps.step_ended()
        if number == validates_after:
            steps.interrupt()
    steps.interrupt()


def test_the_range_is_around_active_steps_after_wait(heard: list[str]) -> None:
    """Every step is marked."""
    _train(TrainingRange(wait=2, active=3), 7)
    assert heard == [*["step"] * 2, "start", *["step"] * 3, "stop", *["step"] * 2]


def test_validation_is_left_out(heard: list[str]) -> None:
    """It interrupts the range, which resumes with the next step."""
    _train(TrainingRange(wait=0, active=3), 4, validates_after=1)
    assert heard == ["start", "step", "stop", "start", "step", "step", "stop", "step"]


def test_a_short_training(heard: list[str]) -> None:
    """A range that has begun ends; nothing else is chosen."""
    _train(TrainingRange(wait=2), 2)
    assert heard == ["step", "step"]
    _train(TrainingRange(wait=0), 1)
    assert heard[2:] == ["start", "step", "stop"]


@pytest.mark.parametrize(("wait", "active"), [(-1, 1), (0, 0)])
def test_invalid_counts_are_an_error_at_once(wait: int, active: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        TrainingRange(wait, active)
