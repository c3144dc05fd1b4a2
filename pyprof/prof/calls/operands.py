"""Operands that are smaller than they seem: gradients repeated by a view, one tensor given twice.

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

    from pyprof.marker import Call, Seq, Value

_REPEATS = re.compile(r"MeanBackward\d*")
"""Nodes whose division reads what they expanded (torch/csrc/autograd/FunctionsManual.cpp)."""
_WITH_ITSELF = {"ne": "isnan", "eq": "isfinite"}
"""Comparisons, and the ops that call them with their one tensor as both operands."""


def with_itself(call: Call, around: Call | None) -> Call:
    """Give a call with one operand, where what is around it gave it the same tensor twice."""
    same = around is not None and _WITH_ITSELF.get(call.op) == around.op
    twice = len(call.args) > 1 and call.args[0] == call.args[1]
    return replace(call, args=call.args[:1]) if same and twice else call


def with_repeats(call: Call, node: Seq) -> Call:
    """Give a call made by a backward node with the strides of a gradient that the node repeats."""
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
    """Give strides of one shape repeated to another, with 0 where it repeats; None if it cannot.

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


# What a marker says of a sparse tensor, said again of the ops inside that were given it.
#
# PyTorch's own ranges tell no layout, and so seem to multiply dense matrices.


def stored(calls: Iterable[Call | None]) -> Mapping[tuple[int, ...], Tensor]:
    """Give the sparse tensors of which calls say how much they store, by their shape."""
    operands = (tensor for call in calls if call is not None for tensor in tensors(call))
    return {tensor.shape: tensor for tensor in operands if tensor.nnz is not None}


def with_stored(
    call: Call | None, stored_by_shape: Mapping[tuple[int, ...], Tensor]
) -> Call | None:
    """Give the call with those tensors in the place of its own, where it says less of them."""
    if call is None or not stored_by_shape:
        return call
    return replace(
        call, args=tuple(_with_stored_layout(value, stored_by_shape) for value in call.args)
    )


def _with_stored_layout(value: Value, stored_by_shape: Mapping[tuple[int, ...], Tensor]) -> Value:
    if not isinstance(value, Tensor) or value.nnz is not None:
        return value
    may_be_sparse = value.sparse or (value.dtype is None and value.stride is None)
    return stored_by_shape.get(value.shape, value) if may_be_sparse else value
