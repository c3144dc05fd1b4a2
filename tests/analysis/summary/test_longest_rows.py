"""Groups of rows keep the numbers of their longest rows, also across captures."""

import numpy as np

from pyprof.analysis.summary.longest_rows import LongestRows, longest_rows

KEYS = [("mm",), ("relu",)]


def test_the_longest_rows_of_each_group_are_kept() -> None:
    group = np.array([0, 1, 0, 0, 0])
    ns = np.array([5, 9, 7, 7, 6])
    found = longest_rows(group, ns, KEYS, np.array([25, 9]), None, 5)
    assert (found.row_ids(("mm",)), found.row_ids(("relu",))) == ((3, 4, 5), (2,))


def test_chosen_rows_keep_their_numbers() -> None:
    rows = np.array([10, 20])
    found = longest_rows(np.array([0, 0]), np.array([1, 2]), KEYS, np.array([3, 0]), rows, 30)
    assert found.row_ids(("mm",)) == (21, 11)


def test_rows_of_a_second_capture_are_numbered_on() -> None:
    a = LongestRows({("mm",): ((9, 1), (3, 2))}, 10)
    b = LongestRows({("mm",): ((7, 1),), ("relu",): ((1, 4),)}, 5)
    merged = a.merged(b)
    assert merged.row_ids(("mm",)) == (1, 11, 2)
    assert merged.row_ids(("relu",)) == (14,)
    assert merged.row_count == 15
