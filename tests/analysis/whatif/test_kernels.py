"""Times of rows under changes, with intervals."""

import numpy as np
import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.back_test import Interval
from pyprof.analysis.whatif.kernels import Kernels, unchanged
from tests.analysis.captures import US, Work, capture, table

_ROW = np.array([0])


def _two() -> Kernels:
    work = [Work((at * US, (at + 100) * US), (0, 5)) for at in (10, 200)]
    return unchanged(RuleContext(table(capture(work))))


def test_no_change_is_certain() -> None:
    span = _two().span
    assert (span.low, span.expected, span.high) == (span.now,) * 3 == (200 * US,) * 3


def test_an_interval_is_that_of_the_changed_rows() -> None:
    """A row of 100 us now takes 40, 20 to 60; the other is unchanged."""
    span = _two().retimed(_ROW, np.array([40.0 * US]), Interval(0.5, 1.5)).span
    assert (span.low, span.expected, span.high) == (120 * US, 140 * US, 160 * US)


def test_errors_of_two_changes_add_up_as_independent_ones() -> None:
    """Two factors of 2 give 2 ** sqrt(2)."""
    once = _two().retimed(_ROW, np.array([40.0 * US]), Interval(0.5, 2))
    span = once.retimed(_ROW, np.array([20.0 * US]), Interval(0.5, 2)).span
    assert span.high == pytest.approx((100 + 20 * 2**2**0.5) * US, abs=1)
    assert span.low == pytest.approx((100 + 20 / 2**2**0.5) * US, abs=1)


def test_no_time_is_negative() -> None:
    changed = _two().retimed(_ROW, np.array([1.0]), Interval(1e-6, 2))
    assert 0 <= changed.low.min() <= changed.ns.min()
    assert changed.span.low >= 100 * US
