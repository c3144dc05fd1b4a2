"""Sums of captures are merged by their fields' types, or by a rule of the field."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.records.merging import known_in_both, merge_sums, merge_unique, merged_by, same_or_none


class Pair(NamedTuple):
    ns: int
    rows: int


@dataclass(frozen=True)
class Sums:
    ops: pa.Table
    by_reason: Mapping[str, Pair]
    gpus: tuple[str, ...] = merged_by(merge_unique)
    tokens: int | None = merged_by(same_or_none)
    host: int | None = merged_by(known_in_both)
    blocking: bool = merged_by(operator.or_)
    longest: int = merged_by(max, default=0)


_NAMES = st.sampled_from(["mm", "relu", None])
_SUMS = st.builds(
    Sums,
    st.lists(st.tuples(_NAMES, st.integers(0, 9)), max_size=4).map(
        lambda rows: pa.table(
            {"op": pa.array([op for op, _ in rows], pa.string()), "ns": [n for _, n in rows]},
            pa.schema({"op": pa.string(), "ns": pa.int64()}),
        )
    ),
    st.dictionaries(st.sampled_from("ab"), st.builds(Pair, st.integers(0, 9), st.integers(0, 9))),
    st.lists(st.sampled_from(["H100", "A100"]), unique=True).map(tuple),
    st.none() | st.integers(1, 2),
    st.none() | st.integers(1, 9),
    st.booleans(),
    st.integers(0, 9),
)


def _compared(sums: Sums) -> tuple[object, ...]:
    ops: dict[str | None, int] = {}
    for row in sums.ops.to_pylist():
        ops[row["op"]] = ops.get(row["op"], 0) + row["ns"]
    rest = (sums.tokens, sums.host, sums.blocking, sums.longest)
    return (ops, dict(sums.by_reason), set(sums.gpus), *rest)


@given(st.lists(_SUMS, min_size=3, max_size=3), st.permutations(range(3)))
def test_merging_is_commutative_and_associative(sums: Sequence[Sums], order: Sequence[int]) -> None:
    a, b, c = sums
    merged = _compared(merge_sums(merge_sums(a, b), c))
    assert _compared(merge_sums(a, merge_sums(b, c))) == merged
    assert _compared(reduce(merge_sums, [sums[place] for place in order])) == merged


def test_arrays_of_different_length_are_added() -> None:
    assert merge_sums(np.array([1, 2, 3]), np.array([10, 20])).tolist() == [11, 22]


def test_a_missing_value_becomes_the_other_captures() -> None:
    assert merge_sums(None, Pair(1, 2)) == merge_sums(Pair(1, 2), None) == Pair(1, 2)


def test_a_class_may_merge_itself() -> None:
    class Slowest(int):
        def merged(self, other: int) -> int:
            return max(self, other)

    assert merge_sums(Slowest(3), Slowest(5)) == 5


@pytest.mark.parametrize("value", [True, "text", object()])
def test_a_type_without_a_rule_is_refused(value: object) -> None:
    """A flag could hold if either does or if both do: its field has to say which."""
    with pytest.raises(TypeError, match="no rule for merging"):
        merge_sums(value, value)


def test_numbers_of_equal_keys_are_added() -> None:
    """Integers and floats; each combination of the other columns has one row."""
    one = pa.table({"op": ["mm", "relu"], "dir": ["fprop"] * 2, "ns": [3, 5], "share": [0.5, 0.25]})
    other = pa.table({"op": ["relu"], "dir": ["fprop"], "ns": [7], "share": [0.5]})
    assert merge_sums(one, other).sort_by("op").to_pylist() == [
        {"op": "mm", "dir": "fprop", "ns": 3, "share": 0.5},
        {"op": "relu", "dir": "fprop", "ns": 12, "share": 0.75},
    ]
