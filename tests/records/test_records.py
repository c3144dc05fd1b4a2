"""Ids of values and combinations in columns of records."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import schema
from pyprof.records.records import (
    DictionaryColumn,
    Records,
    combinations,
    distinct,
    number_combinations,
    time_by_value,
)

_FEW = st.integers(-3, 3)
_ANY = st.integers(-(2**63), 2**63 - 1)
_INT32 = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(_FEW, _FEW, _ANY) | st.tuples(_ANY, _FEW, _FEW)))
def test_distinct_combinations_are_numbered_in_order_of_occurrence(
    rows: list[tuple[int, int, int]],
) -> None:
    known: dict[tuple[int, int, int], int] = {}
    expected = [known.setdefault(row, len(known)) for row in rows]
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    assert number_combinations(*columns).tolist() == expected
    first, number = combinations(*columns)
    assert number.tolist() == expected
    assert first.tolist() == [rows.index(row) for row in known]


@given(st.lists(st.tuples(_INT32, _INT32)))
def test_combined_ids_of_narrow_columns_do_not_overflow(rows: list[tuple[int, int]]) -> None:
    """Products of what 32 bits hold need more."""
    known: dict[tuple[int, int], int] = {}
    expected = [known.setdefault(row, len(known)) for row in rows]
    columns = np.array(rows, np.int32).reshape(-1, 2).T
    assert number_combinations(*columns).tolist() == expected


@pytest.mark.slow
def test_combined_ids_of_many_values_do_not_overflow() -> None:
    """Nor do those of values too far apart for one combined id."""
    columns = np.random.default_rng(0).integers(0, 100_000, (2, 300_000)) << 40
    pairs = np.unique(columns, axis=1)
    first, number = combinations(*columns)
    assert len(first) == number.max() + 1 == pairs.shape[1]
    assert (columns[:, first[number]] == columns).all()


_TYPES = st.sampled_from([np.int8, np.int16, np.int32, np.int64])


@given(_TYPES, st.data())
def test_numbers_of_every_width_have_the_same_ids(kind: type, data: st.DataObject) -> None:
    limits = np.iinfo(kind)
    value = st.integers(limits.min, limits.max) | st.integers(limits.min, limits.min + 3)
    keys = data.draw(st.lists(value))
    first, number = distinct(np.array(keys, kind))
    known: dict[int, int] = {}
    assert number.tolist() == [known.setdefault(key, len(known)) for key in keys]
    assert [keys[row] for row in first.tolist()] == [*known]


@pytest.mark.parametrize(("name", "absent"), [("corrId", -1), ("window", 0)])
def test_a_column_that_is_absent_takes_no_memory(name: str, absent: int) -> None:
    numbers = Records(1000, {}).numpy(name, absent)
    assert numbers.tolist() == [absent] * 1000
    assert numbers.strides == (0,)


def test_times_that_are_absent_follow_from_others() -> None:
    """An unknown duration is 0."""
    records = Records(2, {"start": pa.array([5, 7])})
    assert records.numpy("kDuration").tolist() == [0, 0]
    assert records.numpy("end").tolist() == [5, 7]


_INTS = pa.int64()


def test_rows_without_a_time_take_none() -> None:
    """As numbers their duration is 0, and start and end are those of their launch."""
    launch = pa.array([[5, 6], None, [120, 130], [900, 901], [10, 11]], pa.list_(_INTS))
    records = Records(
        5,
        {
            "kDuration": pa.array([None, None, None, None, 50], _INTS),
            "start": pa.array([None, None, None, 300, 100], _INTS),
            "end": pa.array([None, None, None, None, 150], _INTS),
            "launch": launch,
        },
    )
    assert records.numpy("kDuration").tolist() == [0, 0, 0, 0, 50]
    assert records.numpy("start").tolist() == [100, 100, 120, 300, 100]
    assert records.numpy("end").tolist() == [100, 100, 120, 300, 150]
    alone = records.take(np.array([3]))  # also where no row of some has a time
    assert [alone.numpy(name).tolist() for name in ("kDuration", "end")] == [[0], [300]]
    assert Records(1, {}).numpy("start").tolist() == [-1]  # of old files no row has


def test_values_of_a_column_are_looked_at_once_and_given_by_row() -> None:
    """A null has no value: it is what the caller says of it."""
    column = DictionaryColumn(np.array([1, 0, -1, 1]), ["mm", "add"])
    assert column.map(str.upper).at(0) == "ADD"
    assert column.numpy(len, 0).tolist() == [3, 2, 0, 3]
    assert column.matches().tolist() == [True, True, False, True]
    assert column.is_in("mm").tolist() == [False, True, False, False]
    assert column.is_in("mm", None).tolist() == [False, True, True, False]
    empty = DictionaryColumn(np.array([-1]), [])
    assert (empty.numpy(len, -1).tolist(), empty.is_in("mm").tolist()) == ([-1], [False])


def test_rows_without_a_kind_are_chosen_by_none() -> None:
    """As the original's rows, which are all kernels."""
    records = Records(3, {"kind": pa.array(["kernel", "memset", None])})
    assert records.of_kind(schema.KERNEL).tolist() == [True, False, False]
    assert records.of_kind(schema.KERNEL, None).tolist() == [True, False, True]
    assert Records(1, {}).of_kind(schema.KERNEL, None).tolist() == [True]


def test_time_by_value_joins_equal_values_and_leaves_out_those_without_rows() -> None:
    column = DictionaryColumn(np.array([0, 1, -1, 2, 1]), ["a", "b", "a", "c"])
    assert time_by_value(column, np.array([1, 2, 4, 8, 16])) == {
        None: (4, 1), "a": (9, 2), "b": (18, 2),
    }  # fmt: skip
    chosen = np.array([True, False, False, True, False])
    assert time_by_value(column, np.array([1, 2, 4, 8, 16]), chosen) == {"a": (9, 2)}
