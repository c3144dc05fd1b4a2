"""Rows placed in steps by the time of their launch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING
from pyprof.parse.steps.step_bounds import Bounds, placed

ONE_WINDOW = np.zeros(0, np.int64)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=6),
    st.lists(st.integers(-5, 120), max_size=20),
)
def test_a_row_is_in_the_step_that_contains_its_launch(
    steps: list[tuple[int, int]], launches: list[int]
) -> None:
    """As comparing each launch with each step finds."""
    edges = np.cumsum([length for step in steps for length in step])
    bounds = Bounds("ranges", edges[::2], edges[1::2])
    found, start = placed(bounds, np.array(launches, np.int64), ONE_WINDOW)
    assert start is bounds.start
    assert found.tolist() == [
        next(
            (
                number
                for number in range(len(steps))
                if edges[2 * number] <= launch < edges[2 * number + 1]
            ),
            MISSING,
        )
        for launch in launches
    ]


def test_a_step_cut_by_a_pause_begins_in_the_window_in_which_it_ends() -> None:
    bounds = Bounds("ranges", np.array([0, 100]), np.array([100, 200]))
    launch, window = np.array([10, 60, 150]), np.array([0, 1, 1])
    found, start = placed(bounds, launch, window)
    assert (found.tolist(), start.tolist()) == ([MISSING, 0, 1], [60, 100])


def test_the_total_is_the_sum_of_lengths() -> None:
    assert Bounds("ranges", np.array([0, 10]), np.array([5, 30])).total_ns == 25
