"""Columns of whole numbers out of what a trace may say."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.readers.kineto.columns import ints, whole_number

_JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**31) - 2, 2**31 + 1),
    st.floats(),
    st.text(max_size=4),
    st.integers().map(str),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)


@given(st.lists(_JSON), st.sampled_from([pa.int64(), pa.int32()]))
def test_a_column_holds_what_each_value_stands_for(values: list[object], kind: pa.DataType) -> None:
    """What stands for none, or for one too wide, is null."""
    limit = 2 ** (kind.bit_width - 1)
    numbers = [whole_number(value) for value in values]
    fitting = [n if n is not None and -limit <= n < limit else None for n in numbers]
    column = ints(values, kind)
    assert column.type == kind
    assert column.to_pylist() == fitting


@pytest.mark.parametrize("values", [[2.5], [2.5, 1], [7, 2.5, None]])
def test_half_a_number_is_none(values: list[object]) -> None:
    """Arrow, told to make int64 of it, would cut it."""
    assert ints(values).to_pylist() == [value if type(value) is int else None for value in values]


def test_the_widest_numbers_are_kept() -> None:
    """Beside values of other types, too."""
    widest = [-(2**63), 2**63 - 1]
    assert ints(widest).to_pylist() == widest
    assert ints([*widest, "1"]).to_pylist() == [*widest, 1]
    assert ints([*widest, 2**63]).to_pylist() == [*widest, None]
