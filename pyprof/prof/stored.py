"""What a marker says of a sparse tensor, said again of the ops inside that were given it.

PyTorch's own ranges tell no layout, and so seem to multiply dense matrices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.parse.describe import tensors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.marker import Call, Value


def stored(calls: Iterable[Call | None]) -> Mapping[tuple[int, ...], Tensor]:
    """Give the sparse tensors of which calls say how much they store, by their shape."""
    found = (tensor for call in calls if call is not None for tensor in tensors(call))
    return {tensor.shape: tensor for tensor in found if tensor.nnz is not None}


def with_stored(call: Call | None, known: Mapping[tuple[int, ...], Tensor]) -> Call | None:
    """Give the call with those tensors in the place of its own, where it says less of them."""
    if call is None or not known:
        return call
    return replace(call, args=tuple(_known(value, known) for value in call.args))


def _known(value: Value, known: Mapping[tuple[int, ...], Tensor]) -> Value:
    if not isinstance(value, Tensor) or value.nnz is not None:
        return value
    told = value.sparse or (value.dtype is None and value.stride is None)
    return known.get(value.shape, value) if told else value
