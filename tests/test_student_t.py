"""Student's t distribution, compared with closed forms and printed tables."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof.student_t import quantile, two_sided_p

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
"""t beyond which lie 5 % on both sides, as printed in textbooks."""


def test_quantiles_are_those_of_printed_tables() -> None:
    freedom = np.array([*TABLE, 1e6], float)
    assert quantile(0.95, freedom).round(3).tolist() == [*TABLE.values(), 1.96]


@given(st.floats(0, 1e4))
@example(7e-9)
def test_one_and_two_degrees_of_freedom_have_closed_forms(t: float) -> None:
    one, two = two_sided_p(np.array([t, t]), np.array([1.0, 2.0]))
    assert one == pytest.approx(1 - 2 / np.pi * np.arctan(t), abs=1e-9)
    assert two == pytest.approx(1 - t / np.sqrt(2 + t * t), abs=1e-9)


@given(st.floats(0, 50), st.floats(0.01, 10), st.floats(1, 1000))
def test_p_falls_with_t(t: float, more: float, freedom: float) -> None:
    near, far = two_sided_p(np.array([t, t + more]), np.full(2, freedom))
    assert 0 <= far <= near <= 1
    assert two_sided_p(np.zeros(1), np.array([freedom])) == pytest.approx(1)


@given(st.floats(1, 500))
def test_quantile_and_p_agree(freedom: float) -> None:
    t = quantile(0.95, np.array([freedom]))
    assert two_sided_p(t, np.array([freedom])) == pytest.approx(0.05, rel=1e-3)
