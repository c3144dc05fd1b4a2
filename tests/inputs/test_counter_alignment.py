"""Launches of two runs are aligned by name, sizes and order."""

import numpy as np
import pytest

from pyprof.arrays import MISSING
from pyprof.inputs.counter_alignment import Launches, _candidates, match_launches
from pyprof.records.records import DictionaryColumn


def _launches(names: str, grid: int = 1) -> Launches:
    distinct: list[str | None] = [*sorted(set(names))]
    index = np.array([distinct.index(name) for name in names], np.int64)
    lane = np.zeros(len(names), np.int64)
    return Launches(DictionaryColumn(index, distinct), (np.full(len(names), grid),), lane)


@pytest.mark.parametrize(
    ("ours", "theirs", "rows"),
    [
        ("abcab", "abcab", [0, 1, 2, 3, 4]),
        ("abab", "ab", [0, 1, 0, 1]),  # one of two repetitions was profiled
        ("abc", "xyz", [MISSING] * 3),
    ],
)
def test_the_nth_launch_of_a_name_matches_the_nth(ours: str, theirs: str, rows: list[int]) -> None:
    matches = match_launches(_launches(ours), _launches(theirs))
    assert matches.row.tolist() == rows
    assert matches.used.tolist() == [row in rows for row in range(len(theirs))]


def test_every_position_of_a_repeated_sequence_is_a_candidate() -> None:
    part = np.arange(8)
    assert [*_candidates(np.array([*part, 9, *part, *part]), part)] == [0, 9, 17]


def test_launches_of_other_sizes_do_not_match() -> None:
    assert match_launches(_launches("a"), _launches("a", grid=2)).row.tolist() == [MISSING]
