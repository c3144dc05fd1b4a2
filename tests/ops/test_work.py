"""Tensors and arguments of a call, as formulas query them."""

import math
from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import UNTYPED, Call, Opaque, Summary, Tensor
from pyprof.ops.examples import f32
from tests.ops.test_costs import FILTERS, IMAGE, X, same_cost


@pytest.mark.parametrize(
    ("shape", "strides"), [((4, 3, 5), (0, 1, 0)), ((1, 7, 1), (7, 1, 1)), ((1, 7, 1), (0, 1, 0))]
)
def test_expanded_operands_are_read_at_their_stored_size(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    """A dimension of stride 0 repeats the same elements."""
    x, y = Tensor(shape, "float32", strides), Tensor(shape, "float32")
    found = ops.cost(Call("torch", "add", (x, y))).bytes
    assert found == 4 * (shape[1] + 2 * math.prod(shape))


def test_a_quantized_operand_is_read_at_its_stored_size() -> None:
    """Whatever type it pretends to have."""
    x, w = f32(4, 64), replace(f32(32, 64), subclass="Int8Tensor", nbytes=2176)
    found = ops.cost(Call("torch.nn.functional", "linear", (x, w))).bytes
    assert found == 4 * (4 * 64 + 4 * 32) + 2176


def test_lists_flattened_by_old_markers() -> None:
    """cat([a, b], dim) was written as two tensors; now as one tuple of them."""
    found = same_cost(
        Call("torch", "cat", (X, X), {"dim": 1}),
        Call("torch", "cat", ((X, X), 1)),
        Call("aten", "cat", ((X, X), 1)),
        Call("torch", "cat", (Summary(2, 280000, "float32", (X,)), 1)),
    )
    assert found.bytes == 2 * 2 * 4 * 140000


def test_arguments_that_old_markers_left_out() -> None:
    """softmax(x, dim, dtype) lost its dtype; a size may be one tuple or several numbers."""
    same_cost(
        Call("torch.nn.functional", "softmax", (X,), {"dim": -1}),
        Call("Tensor", "softmax", (X, -1)),
        Call("torch", "softmax", (X, -1)),
        Call("aten", "_softmax", (X, -1, False)),
    )
    same_cost(Call("torch", "zeros", (2, 3)), Call("torch", "zeros", ((2, 3),)))
    same_cost(Call("Tensor", "sum", (X, 1)), Call("Tensor", "sum", (X,), {"dim": (1,)}))


def test_a_dtype_without_a_type_is_none_where_types_are_recorded() -> None:
    """Kineto states a dtype as a Scalar; emit_nvtx writes None and a dtype alike."""
    tokens, experts, ends = f32(8, 6), f32(2, 6, 5), Tensor((2,), "int32")
    none, unknown = (
        ops.cost(Call("aten", "_grouped_mm", (tokens, experts, ends, last, last))).bytes
        for last in (Opaque(UNTYPED), Opaque())
    )
    assert none == 4 * (8 * 6 + 2 * 6 * 5 + 8 * 5 + 2)
    assert unknown is None


def test_consecutive_numbers_are_separate_arguments() -> None:
    """Stride 2 and padding 1 are not a stride of (2, 1); only a size may be written so."""
    same_cost(
        Call("torch.nn.functional", "conv2d", (IMAGE, FILTERS, None, 2, 1)),
        Call("torch.nn.functional", "conv2d", (IMAGE, FILTERS, None, (2, 2), (1, 1))),
        Call("torch.nn.functional", "conv2d", (IMAGE, FILTERS), {"stride": 2, "padding": 1}),
    )
    same_cost(
        Call("torch.nn.functional", "max_pool2d", (IMAGE, 3, 2, 1, 1), {"ceil_mode": False}),
        Call("torch.nn.functional", "max_pool2d", (IMAGE, (3, 3), (2, 2), (1, 1), (1, 1))),
        Call("aten", "max_pool2d", (IMAGE, (3, 3), (2, 2), (1, 1), (1, 1), False)),
    )
    row = f32(20, 1)
    same_cost(
        Call("Tensor", "expand", (row, 35, 20, 200)),
        Call("Tensor", "expand", (row, (35, 20, 200))),
        direction="bprop",
    )


@pytest.mark.parametrize(("rank", "dims"), [(0, [-1, 0]), (1, [-1, 0]), (2, [-2, -1, 0, 1])])
def test_a_sum_over_no_dimension_of_its_tensor_is_unknown(rank: int, dims: list[int]) -> None:
    costs = {dim: ops.cost(Call("torch", "sum", (f32(*[3] * rank), dim))) for dim in range(-3, 3)}
    assert [dim for dim, cost in costs.items() if cost.bytes is not None] == dims
