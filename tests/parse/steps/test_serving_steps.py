"""Each activity is of the step of a serving framework that it was launched in."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import readers
from pyprof.parse import parse
from tests.builders import Range, Work, nsys_db
from tests.readers.kineto_json import event, kernel, launch, read

STEP = "execute_{0}_context_0(sq0sk0sqsq0sqsk0)_generation_{0}(sq{0}sk9sqsq{0}sqsk9)"


def _steps(folder: Path, ranges: list[tuple[int, int]], launches: list[int]) -> list[str | None]:
    """Parse a trace of steps (start, duration), numbered from 1, and launches at some times."""
    events = [
        event("user_annotation", STEP.format(number), start, dur)
        for number, (start, dur) in enumerate(ranges, 1)
    ]
    for corr, ts in enumerate(launches, 1):
        events += [launch(corr, ts), kernel(corr, 10_000 + 10 * corr)]
    found: list[str | None] = parse(read(folder, events)).arrow("servingStep").to_pylist()
    return found


def test_the_step_is_that_of_the_launch(tmp_path: Path) -> None:
    """Whenever it ran; before, between and behind steps there is none."""
    found = _steps(tmp_path, [(100, 50), (200, 50)], [90, 100, 149, 160, 210, 260])
    assert found == [None, STEP.format(1), STEP.format(1), None, STEP.format(2), None]


@given(
    lengths=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    launches=st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True).map(sorted),
)
def test_steps_are_found_as_one_looks_for_them(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[tuple[int, int]], launches: list[int]
) -> None:
    """Brute force over steps that follow each other after pauses."""
    ranges, at = [], 0
    for pause, dur in lengths:
        ranges.append((at + pause, dur))
        at += pause + dur
    folder = tmp_path_factory.mktemp("steps")
    expected = [
        next((STEP.format(n) for n, (ts, dur) in reversed([*enumerate(ranges, 1)])
              if ts <= when <= ts + dur), None)
        for when in launches
    ]  # fmt: skip
    assert _steps(folder, ranges, launches) == expected


def test_steps_of_another_process_are_not_meant(tmp_path: Path) -> None:
    """In a capture of two, each has its own."""
    step = Range(STEP.format(1), (0, 100), pid=1)
    work = [
        Work("mine", (1000, 1010), (10, 20), pid=1),
        Work("other", (1100, 1110), (30, 40), pid=2),
    ]
    path = nsys_db(tmp_path / "net.sqlite", work, [step])
    records = parse(readers.read(path))
    assert records.arrow("servingStep").to_pylist() == [STEP.format(1), None]
