"""Interval sets, compared with sets of single nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.time.intervals import EMPTY, Intervals, complement, union, union_of

_LAST = 40
_BOUNDS = st.lists(st.tuples(st.integers(0, _LAST), st.integers(0, _LAST)), max_size=8)


def _set(bounds: list[tuple[int, int]]) -> Intervals:
    start, end = (np.array([pair[place] for pair in bounds], np.int64) for place in (0, 1))
    return union_of(start, end)


def _instants(bounds: list[tuple[int, int]]) -> set[int]:
    return {instant for start, end in bounds for instant in range(start, end)}


def _held(found: Intervals) -> set[int]:
    return _instants(list(zip(found.start.tolist(), found.end.tolist(), strict=True)))


@given(_BOUNDS, _BOUNDS)
def test_set_operations_agree_with_sets_of_instants(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    a, b = _set(one), _set(other)
    assert _held(a | b) == _instants(one) | _instants(other)
    assert _held(a & b) == _instants(one) & _instants(other)
    assert _held(a - b) == _instants(one) - _instants(other)
    assert a.total == len(_instants(one))


@given(_BOUNDS, _BOUNDS)
def test_intervals_are_sorted_and_do_not_touch(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    for found in (_set(one), _set(one) & _set(other), _set(one) - _set(other)):
        assert (found.start < found.end).all()
        assert (found.end[:-1] < found.start[1:]).all()


@given(_BOUNDS, st.integers(0, _LAST), st.integers(0, _LAST))
def test_the_complement_is_what_is_left(
    bounds: list[tuple[int, int]], start: int, end: int
) -> None:
    found = complement(_set(bounds), start, end)
    assert _held(found) == set(range(start, end)) - _instants(bounds)


@given(_BOUNDS, _BOUNDS)
def test_inside_is_the_length_of_each_intersection(
    bounds: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    ordered = [(min(pair), max(pair)) for pair in windows]
    start, end = (np.array([pair[place] for pair in ordered], np.int64) for place in (0, 1))
    expected = [len(_instants(bounds) & set(range(*pair))) for pair in ordered]
    assert _set(bounds).length_within(start, end).tolist() == expected


@given(_BOUNDS, st.integers(0, _LAST), st.integers(0, _LAST))
def test_intervals_that_touch_a_time_are_returned_whole(
    bounds: list[tuple[int, int]], one: int, other: int
) -> None:
    start, end = sorted((one, other))
    every = _set(bounds)
    pairs = zip(every.start.tolist(), every.end.tolist(), strict=True)
    expected = [pair for pair in pairs if pair[1] >= start and pair[0] <= end]
    found = every.near(start, end)
    assert [*zip(found.start.tolist(), found.end.tolist(), strict=True)] == expected


def test_an_empty_union_is_empty() -> None:
    assert union([]) is EMPTY
    assert EMPTY.total == len(EMPTY) == 0
