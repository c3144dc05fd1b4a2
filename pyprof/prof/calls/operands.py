"""Operands that are smaller than they seem: repeated by a view, given twice, or sparse.

Gradients that a backward node repeats by a view, where no strides were recorded to tell it:

The gradient of a mean is its result's, expanded to the input's shape and divided: what is read is
as small as the result. Without that its kernel would seem to be faster than memory.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.parse.ranges.range_stacks import tensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.marker import Call, Statement, Value

_REPEATS = re.compile(r"MeanBackward\d*")
"""Nodes whose division reads what they expanded (torch/csrc/autograd/FunctionsManual.cpp)."""
_WITH_ITSELF = {"ne": "isnan", "eq": "isfinite"}
"""Comparisons, and the ops that call them with their one tensor as both operands."""


def as_unary(call: Call, around: Call | None) -> Call:
    """Return the call with one operand if the enclosing op passed it the same tensor twice."""
    same = around is not None and _WITH_ITSELF.get(call.op) == around.op
    twice = len(call.args) > 1 and call.args[0] == call.args[1]
    return replace(call, args=call.args[:1]) if same and twice else call


def with_expanded_strides(call: Call, node: Statement) -> Call:
    """Return a call of a backward node with the strides of the gradient that the node expands."""
    incoming = node.call.args if node.call is not None else ()
    if call.op != "div" or not _REPEATS.fullmatch(node.name) or len(incoming) != 1:
        return call
    gradient, first = incoming[0], call.args[0] if call.args else None
    if not isinstance(gradient, Tensor) or not isinstance(first, Tensor) or first.stride:
        return call
    stride = _strides(gradient.shape, first.shape)
    if stride is None:
        return call
    return replace(call, args=(replace(first, stride=stride), *call.args[1:]))


def _strides(small: tuple[int, ...], large: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides that expand one shape to another, 0 along repeated dimensions; None if impossible.

    Dimensions of the small one that a mean took away stand nowhere in it: the others are matched
    from the last on.
    """
    left = [size for size in small if size != 1]
    stride, step = [], 1
    for size in reversed(large):
        repeats = not left or left[-1] != size
        stride.append(0 if repeats else step)
        if not repeats:
            step *= left.pop()
    return None if left else tuple(reversed(stride))


# PyTorch's own ranges tell no layout, and so seem to multiply dense matrices.
def sparse_operands(calls: Iterable[Call | None]) -> Mapping[tuple[int, ...], Tensor]:
    """Sparse tensors whose number of stored elements is known, by shape."""
    operands = (tensor for call in calls if call is not None for tensor in tensors(call))
    return {tensor.shape: tensor for tensor in operands if tensor.nnz is not None}


def with_sparse_layout(
    call: Call | None, sparse_by_shape: Mapping[tuple[int, ...], Tensor]
) -> Call | None:
    """Replace arguments of unknown layout by the sparse tensor of the same shape."""
    if call is None or not sparse_by_shape:
        return call
    return replace(call, args=tuple(_with_layout(value, sparse_by_shape) for value in call.args))


def _with_layout(value: Value, sparse_by_shape: Mapping[tuple[int, ...], Tensor]) -> Value:
    if not isinstance(value, Tensor) or value.nnz is not None:
        return value
    may_be_sparse = value.sparse or (value.dtype is None and value.stride is None)
    return sparse_by_shape.get(value.shape, value) if may_be_sparse else value
