"""The sweep equals the definition of nesting, for any ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING
from pyprof.parse.ranges import nesting
from pyprof.parse.ranges.nesting import innermost, nest

ways = pytest.mark.parametrize("steps", [0, 1, nesting._STEPS])
"""Levels that are climbed for all ranges at once; deeper ones are climbed one by one."""

SPANS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 12)).map(
        lambda drawn: (drawn[0], drawn[1], drawn[1] + drawn[2])
    ),
    max_size=25,
)
"""(thread, start, end): nested, side by side, overlapping, empty, equal."""


def _columns(spans: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    array = np.array(spans, np.int64).reshape(-1, 3)
    return array[:, 0], array[:, 1], array[:, 2]


def _encloses(outer: tuple[int, int, int], inner: tuple[int, int, int]) -> bool:
    return outer[0] == inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2]


@ways
@given(spans=SPANS)
def test_each_range_has_its_nearest_enclosing_range(
    spans: list[tuple[int, int, int]], steps: int
) -> None:
    """The enclosing range that comes last in (start, -end, tiebreak) order."""
    tie = np.arange(len(spans))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_STEPS", steps)
        found = nest(*_columns(spans), lambda: tie)
    assert sorted(found.order.tolist()) == list(range(len(spans)))
    place = {row: position for position, row in enumerate(found.order.tolist())}
    for row, span in enumerate(spans):
        before = (span[1], -span[2], row)
        enclosing = [
            ((other[1], -other[2], n), n)
            for n, other in enumerate(spans)
            if _encloses(other, span) and (other[1], -other[2], n) < before
        ]
        expected = place[max(enclosing)[1]] if enclosing else MISSING
        assert found.parent[place[row]] == expected


@ways
@given(spans=SPANS, launches=SPANS)
def test_each_launch_has_its_innermost_range(
    spans: list[tuple[int, int, int]], launches: list[tuple[int, int, int]], steps: int
) -> None:
    """The last to start of those that contain it, then the first to end."""
    ranges = nest(*_columns(spans), lambda: np.arange(len(spans)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_STEPS", steps)
        found = innermost(ranges, *_columns(launches)).tolist()
    for launch, position in zip(launches, found, strict=True):
        around = [span for span in spans if _encloses(span, launch)]
        if not around:
            assert position == MISSING
            continue
        last = max(around, key=lambda span: (span[1], -span[2]))
        got = (ranges.thread[position], ranges.start[position], ranges.end[position])
        assert tuple(map(int, got)) == last


@given(spans=SPANS, seed=st.randoms(use_true_random=False))
def test_the_order_of_rows_decides_nothing(
    spans: list[tuple[int, int, int]], seed: st.DrawFn
) -> None:
    numbered = list(enumerate(spans))
    seed.shuffle(numbered)  # type: ignore[attr-defined]
    whole = nest(*_columns(spans), lambda: np.arange(len(spans)))
    other = nest(
        *_columns([span for _, span in numbered]), lambda: np.array([n for n, _ in numbered])
    )
    assert whole.parent.tolist() == other.parent.tolist()
    assert [numbered[row][0] for row in other.order] == whole.order.tolist()


@given(spans=SPANS, deeper=st.integers(0, 30))
def test_depth_counts_the_ranges_above(spans: list[tuple[int, int, int]], deeper: int) -> None:
    """Pointer jumping gives what walking up gives."""
    spans = [*spans, *((0, 0, 99 - level) for level in range(deeper))]
    ranges = nest(*_columns(spans), lambda: np.arange(len(spans)))
    for position, depth in enumerate(ranges.depth.tolist()):
        steps, above = 0, ranges.parent[position]
        while above != MISSING:
            steps, above = steps + 1, ranges.parent[above]
        assert depth == steps
