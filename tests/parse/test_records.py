"""What columns of records are numbered by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.parse.records import numbers

_FEW = st.integers(-3, 3)
_ANY = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(_FEW, _FEW, _ANY) | st.tuples(_ANY, _FEW, _FEW)))
def test_distinct_combinations_are_numbered_as_they_come(rows: list[tuple[int, int, int]]) -> None:
    """As a dict does it, whatever the numbers are."""
    known: dict[tuple[int, int, int], int] = {}
    expected = [known.setdefault(row, len(known)) for row in rows]
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    assert numbers(*columns).tolist() == expected


@pytest.mark.parametrize("count", [1, 2])
def test_no_rows_have_no_numbers(count: int) -> None:
    """An empty column is a column."""
    assert numbers(*[np.zeros(0, np.int64)] * count).tolist() == []
