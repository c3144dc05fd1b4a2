"""Values of columns as Arrow arrays: null if nothing is known."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pyprof
from pyprof.arrays import MISSING, or_null
from pyprof.marker import Call, encode_op, encode_seq
from pyprof.ops.examples import f32
from pyprof.prof.columns import column_values as values
from pyprof.records.records import DictionaryColumn
from tests.builders import Range, Work, nsys_db
from tests.prof.kernels_in_ranges import rows_of


def test_missing_and_non_finite_values_are_null() -> None:
    assert or_null(np.array([0, MISSING, 7])).to_pylist() == [0, None, 7]
    odd = np.array([1.6, math.nan, math.inf, -math.inf])
    assert values.floats(odd).to_pylist() == [1.6, None, None, None]
    assert values.rounded_integers(odd).to_pylist() == [2, None, None, None]


def test_fallback_values_replace_non_finite_ones() -> None:
    first, others = np.array([1.0, math.nan, math.inf]), np.array([5.0, 6.0, math.nan])
    assert np.array_equal(values.or_else(first, others), [1.0, 6.0, math.nan], equal_nan=True)


def test_each_distinct_value_is_formatted_once() -> None:
    asked: list[object] = []

    def spell(value: object) -> str | None:
        asked.append(value)
        return value.upper() if isinstance(value, str) and value else None

    column = DictionaryColumn(np.array([0, 1, MISSING, 0]), ["a", ""])
    assert values.format_distinct(column, spell).to_pylist() == ["A", None, None, "A"]
    assert asked == ["a", ""]


@pytest.mark.parametrize(("numbers", "text"), [([1, -2], "1,-2"), ([7], "7"), ([], None)])
def test_lists_of_numbers_are_joined_with_commas(numbers: list[int], text: str | None) -> None:
    assert values.commas(numbers) == text
    lists = pa.array([None, numbers, [3]], pa.list_(pa.int64()))
    assert values.format_lists(lists).to_pylist() == [None, text, "3"]


@pytest.mark.parametrize(
    ("names", "outermost"), [(["torch", "aten"], "torch"), (["na", "torch"], None), ([], None)]
)
def test_a_module_that_the_original_called_na_is_unknown(
    names: list[str], outermost: str | None
) -> None:
    assert values.outermost_module(names) == outermost


@pytest.mark.parametrize(("inner", "op"), [("aten::add_", "bias"), ("aten::mm", "linear")])
def test_a_pointwise_op_inside_a_linear_is_its_bias(inner: str, op: str, tmp_path: Path) -> None:
    x = f32(4, 4)
    linear = encode_op(Call("torch.nn.functional", "linear", (x, x, f32(4))))
    added = encode_seq(inner, seq=1, op_id=1, sizes=[[4, 4], [4, 4]])
    assert rows_of(tmp_path, [linear, added], "kernel").op.tolist() == [op]


@pytest.mark.parametrize(("inner", "op"), [("aten::add", "linear"), ("aten::sum", "bias")])
def test_an_addition_in_the_backward_pass_of_a_linear_is_not_its_bias(
    inner: str, op: str, tmp_path: Path
) -> None:
    """It adds up the gradients of an input that other ops take, too."""
    x, sizes = f32(4, 4), [[4, 4], [4, 4]]
    linear = encode_op(Call("torch.nn.functional", "linear", (x, x)))
    ranges = [
        Range(linear, (0, 100)),
        Range(encode_seq("aten::view", seq=5, sizes=sizes[:1]), (1, 90)),
        Range(encode_seq("ViewBackward0", seq=5), (200, 300)),
        Range(encode_seq(inner, op_id=3, sizes=sizes), (201, 290)),
    ]
    work = [
        Work("gemm", (1000, 1100), (10, 20)),
        Work("vectorized_elementwise_kernel", (1200, 1300), (210, 220)),
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges))
    assert rows.op.tolist() == ["linear", op]
