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


@pytest.mark.parametrize(
    ("chosen", "count", "validates_after", "expected"),
    [
        pytest.param(
            {"wait": 2, "active": 3}, 7, 0,
            "step step start step step step stop step step", id="active steps after wait",
        ),
        pytest.param(
            {"wait": 0, "active": 3}, 4, 1,
            "start step stop start step step stop step", id="validation is left out",
        ),
        pytest.param({"wait": 2}, 2, 0, "step step", id="a training that is too short"),
        pytest.param({"wait": 0}, 1, 0, "start step stop", id="it ends in the range"),
    ],
)  # fmt: skip
def test_the_range_is_around_training_steps_alone(
    chosen: dict[str, int], count: int, validates_after: int, expected: str, heard: list[str]
) -> None:
    """Every step is marked; validation interrupts the range, which resumes with the next step."""
    steps = TrainingRange(**chosen)
    for number in range(1, count + 1):
        steps.step_begins()
        steps.step_ended()
        if number == validates_after:
            steps.interrupt()
    steps.interrupt()
    assert heard == expected.split()


@pytest.mark.parametrize(("wait", "active"), [(-1, 1), (0, 0)])
def test_invalid_counts_are_an_error_at_once(wait: int, active: int) -> None:
    with pytest.raises(ValueError, match="1 or more"):
        TrainingRange(wait, active)
