"""Impossible times, and the reasons."""

import numpy as np
import pytest

from pyprof.arrays import Int64Array
from pyprof.readers import spans
from pyprof.readers.spans import LONGEST_NS, NO_TIME, Spans


def _reasons(start: Int64Array, end: Int64Array) -> dict[str, list[int]]:
    """Return why consecutive rows of one stream are impossible."""
    rows = np.arange(len(start))
    found = Spans(start, end, np.zeros_like(rows), rows, np.ones(len(rows), bool))
    unknown = spans.invalid_intervals(found, np.zeros(0, np.int64))
    return {why: np.flatnonzero(wrong).tolist() for why, wrong in unknown.items()}


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ((NO_TIME, 5), spans.NO_START),
        ((5, NO_TIME), spans.NO_END),
        ((5, 2**62), spans.TOO_LARGE),
        ((0, 0), spans.NOT_TIMED),
        ((30_000, 29_999), spans.BACKWARDS),
        ((30_000, 30_001 + LONGEST_NS), spans.TOO_LONG),
    ],
)
def test_an_impossible_bound_is_found(bounds: tuple[int, int], why: str) -> None:
    start = 10_000 * np.arange(1, 7)
    end = start + 5_000
    start[2], end[2] = bounds
    assert _reasons(start, end) == {why: [2]}
