"""The interval of a prediction."""

import numpy as np

from pyprof.analysis.whatif.prediction import Span, span


def test_a_gain_and_its_real_range_give_the_time_left() -> None:
    """A gain of 50 of 100, which was 0.8 to 1.2 times so much: 40 to 60."""
    assert span(np.array([60.0, 40.0]), 50.0, 0.8, 1.2) == Span(
        now=100, low=40, expected=50, high=60
    )


def test_no_time_is_negative() -> None:
    """The low end is at least 0."""
    assert span(np.array([100.0]), 90.0, 0.8, 1.2).low == 0
