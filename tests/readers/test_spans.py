"""Impossible times, and the reasons."""

import numpy as np
import pytest

from pyprof.readers import spans
from pyprof.readers.spans import LONGEST_NS, NO_TIME, Spans

STEP = 10_000


def _spans(count: int = 6, **changes: tuple[int, int]) -> Spans:
    """Kernels of a stream, one after the other; `row_2=(start, end)` changes one of them."""
    start = STEP * np.arange(1, count + 1)
    end = start + STEP // 2
    for row, (began, ended) in changes.items():
        start[int(row[4:])], end[int(row[4:])] = began, ended
    same = np.zeros(count, np.int64)
    return Spans(start, end, same, np.arange(count), np.ones(count, bool))


def _reasons(found: Spans) -> dict[str, list[int]]:
    unknown = spans.invalid_intervals(found, np.zeros(0, np.int64))
    return {why: np.flatnonzero(rows).tolist() for why, rows in unknown.items()}


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
    assert _reasons(_spans(row_2=bounds)) == {why: [2]}
