"""Columns as arrays, and sums of which a part may be unknown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyprof.arrays import NONE, ints, sum_if_known

_LEAST = -(2**63)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("absent", [NONE, 0, _LEAST])
def test_null_is_what_stands_for_it_whatever_the_column_holds(
    kind: pa.DataType, absent: int
) -> None:
    """As int64, into which it fits; in one chunk or several."""
    values = pa.array([3, None, 5], kind)
    assert ints(values, absent).tolist() == [3, absent, 5]
    assert ints(pa.chunked_array([values, values.slice(1)]), absent).tolist() == [
        3, absent, 5, absent, 5,
    ]  # fmt: skip
    assert ints(values.slice(2)).dtype == "int64"


def test_indices_of_a_dictionary_are_a_column() -> None:
    """The missing text has none."""
    assert ints(pa.array(["a", None, "b", "a"]).dictionary_encode().indices).tolist() == [
        0, NONE, 1, 0,
    ]  # fmt: skip


def test_a_sum_of_which_a_part_is_unknown_is_unknown() -> None:
    """Nothing adds up to 0."""
    assert sum_if_known([1, 2]) == 3
    assert sum_if_known([1, None]) is None
    assert sum_if_known([]) == 0
