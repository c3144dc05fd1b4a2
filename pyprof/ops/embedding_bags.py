"""Embedding bags: rows of a table added up bag by bag, forward and backward.

One addition for each element of each row. Bytes: indices and offsets, the rows that are picked (at
most the table), a row for each bag; backward the whole table's gradient, which is dense.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.marker import Call, Tensor
from pyprof.ops.indexing import picked
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, like, size

_FUNCTIONAL = "Index input, Tensor weight, Index? offsets"
_TORCH = "Tensor weight, Index input, Index? offsets"
_IDS, _TABLE = Tensor((6,), "int64"), Tensor((100, 8), "float16")
_STARTS = Tensor((2,), "int64")
_FUNCTIONAL_BAG = Call("torch.nn.functional", "embedding_bag", (_IDS, _TABLE, _STARTS))
_TORCH_BAG = Call("torch", "embedding_bag", (_TABLE, _IDS, _STARTS))


@dataclass(frozen=True, slots=True)
class _Bags:
    """What a call of an embedding bag works on."""

    table: Tensor
    places: tuple[Tensor, ...]
    """Which rows, and where bags begin."""
    rows: Tensor
    sums: Tensor


def _bags(a: Args) -> _Bags:
    ids, table, offsets = a.tensor("input"), a.tensor("weight"), a.optional("offsets")
    width = size(table, -1)
    count = size(ids if offsets is None else offsets, 0)
    places = (ids,) if offsets is None else (ids, offsets)
    return _Bags(table, places, like(table, (ids.numel, width)), like(table, (count, width)))


# two bags of 3 rows of 8: 48 additions; 6 indices and 2 offsets of 8 bytes, 48 read, 16 written
# of 2 bytes
@op(
    "torch.nn.functional.embedding_bag",
    signature=_FUNCTIONAL,
    example=_FUNCTIONAL_BAG,
    flops=48,
    bytes=192,
)
@op(
    *("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"),
    signature=_TORCH,
    example=_TORCH_BAG,
    flops=48,
    bytes=192,
)
def embedding_bag(a: Args) -> Work:
    """The rows of each bag are added."""
    bags = _bags(a)
    rows = bags.rows.numel
    return Work(rows, (*bags.places, picked(bags.table, rows)), (bags.sums,))


# the rows' gradients: 48 additions; 6 indices and 2 offsets of 8 bytes, go 16 read, the table's
# gradient 800 written of 2 bytes
@op(
    "torch.nn.functional.embedding_bag",
    direction=BPROP,
    signature=_FUNCTIONAL,
    example=_FUNCTIONAL_BAG,
    flops=48,
    bytes=1696,
)
@op(
    *("embedding_bag", "_embedding_bag"),
    direction=BPROP,
    signature=_TORCH,
    example=_TORCH_BAG,
    flops=48,
    bytes=1696,
)
def embedding_bag_backward(a: Args) -> Work:
    """Each bag's gradient is added to the rows that were in it."""
    bags = _bags(a)
    return Work(bags.rows.numel, (*bags.places, bags.sums), (like(bags.table),))
