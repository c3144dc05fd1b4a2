"""Columns as arrays, and sums with unknown parts."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import MISSING, ints, latest_before, nearest, referenced_rows, sum_if_known

_INT64_MIN = -(2**63)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("absent", [MISSING, 0, _INT64_MIN])
def test_null_becomes_the_given_value_for_every_type(kind: pa.DataType, absent: int) -> None:
    values = pa.array([3, None, 5], kind)
    assert ints(values, absent).tolist() == [3, absent, 5]
    assert ints(pa.chunked_array([values, values.slice(1)]), absent).tolist() == [
        3, absent, 5, absent, 5,
    ]  # fmt: skip
    assert ints(values.slice(2)).dtype == "int64"


def test_indices_of_a_dictionary_are_a_column() -> None:
    assert ints(pa.array(["a", None, "b", "a"]).dictionary_encode().indices).tolist() == [
        0, MISSING, 1, 0,
    ]  # fmt: skip


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert sum_if_known([1, 2]) == 3
    assert sum_if_known([1, None]) is None
    assert sum_if_known([]) == 0


@given(st.lists(st.lists(st.integers(MISSING, 9)), max_size=3))
def test_used_rows_are_sorted_without_missing(rows: list[list[int]]) -> None:
    named = {row for each in rows for row in each} - {MISSING}
    assert referenced_rows([np.array(each, np.int64) for each in rows], 10).tolist() == sorted(
        named
    )


_AT = st.lists(st.tuples(st.integers(0, 4) | st.just(1 << 40), st.integers(-2, 4)))


@given(entries=_AT, wanted=_AT)
def test_the_latest_entry_of_a_key_is_found(
    entries: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    keys, starts = np.array(entries, np.int64).reshape(-1, 2).T
    key, before = np.array(wanted, np.int64).reshape(-1, 2).T
    expected = []
    for one, at in wanted:
        rows = [
            (start, row) for row, (of, start) in enumerate(entries) if of == one and start <= at
        ]
        expected.append(max(rows, default=(0, MISSING))[1])
    assert latest_before(keys, starts, key, before).tolist() == expected


@given(st.lists(st.tuples(st.integers(MISSING, 24), st.booleans()), min_size=1, max_size=25))
def test_the_nearest_wanted_ancestor_is_found(tree: list[tuple[int, bool]]) -> None:
    parent = np.array([min(above, place - 1) for place, (above, _) in enumerate(tree)])
    wanted = np.array([flag for _, flag in tree])

    def around(place: int) -> list[int]:
        found = []
        while (place := int(parent[place])) != MISSING:
            found.append(place)
        return found

    expected = [next((p for p in around(n) if wanted[p]), MISSING) for n in range(len(tree))]
    assert nearest(parent, wanted).tolist() == expected
