"""Collective communication: torch.distributed, c10d, NCCL.

No FLOPs: a reduction's additions are not counted. Bytes are this GPU's memory traffic, each
tensor given read once and each result written once. `params` holds what NCCL's own tests call
algorithm bytes S and bus bytes, where the number of ranks n is known: all-reduce 2 S (n - 1) / n,
all-gather, reduce-scatter and all-to-all S (n - 1) / n, broadcast, reduce, send and receive S.
Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f32
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, like, tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

FAMILY = "comm"

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all_reduce", "all_gather", "reduce_scatter"
ALL_TO_ALL, BARRIER, SEND_RECV, ONE_WAY = "all_to_all", "barrier", "send_recv", "broadcast"
GATHER = "gather"

_FACTORS: Mapping[str, int] = {
    ALL_REDUCE: 2,
    ALL_GATHER: 1,
    REDUCE_SCATTER: 1,
    ALL_TO_ALL: 1,
    GATHER: 1,
    "scatter": 1,
}
"""Factors of (n - 1) / n; the bus bytes of other collectives are their algorithm bytes."""

SYNCHRONISING = frozenset({ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BARRIER})
"""Collectives that no rank leaves before the last has come: each needs data of every other."""

_KINDS = (
    (ALL_REDUCE, r"allreduce"),
    (ALL_GATHER, r"allgather"),
    (REDUCE_SCATTER, r"reducescatter"),
    (ALL_TO_ALL, r"alltoall"),
    (SEND_RECV, r"sendrecv|isendirecv|i?send|i?recv"),
    (BARRIER, r"(?:monitored)?barrier"),
    (GATHER, r"gather"),
    ("scatter", r"scatter"),
    (ONE_WAY, r"broadcast"),
    ("reduce", r"reduce"),
)


def kind(name: str) -> str | None:
    """Return the collective of a name in PyTorch's, c10d's or NCCL's spelling; None for others.

    `allreduce_`, `nccl:all_reduce`, `_allgather_base_` and `AllReduce` are recognised, too.
    """
    letters = re.sub(r"[^a-z]", "", name.rpartition(":")[2].lower())
    for collective, pattern in _KINDS:
        if re.match(f"(?:batch)?(?:{pattern})", letters):
            return collective
    return None


def message_bytes(kind: str, sent: int | None, received: int | None) -> int | None:
    """Return the algorithm bytes of what one rank sends and receives; None if unknown."""
    return received if kind in {ALL_GATHER, GATHER} else sent


def bus_factor(kind: str, ranks: int) -> float:
    """Return the factor from algorithm bytes of a collective among `ranks` > 0 to bus bytes."""
    factor = _FACTORS.get(kind)
    return 1.0 if factor is None else factor * (ranks - 1) / ranks


def bus_bytes(kind: str, size: int, ranks: int) -> int:
    """Return the bus bytes of a collective of `size` algorithm bytes among `ranks` > 0."""
    factor = _FACTORS.get(kind)
    return size if factor is None else factor * size * (ranks - 1) // ranks


_X = f32(4, 6)
_ALL = f32(16, 6)
_LISTS = "Tensor[] output, Tensor[] input, any group"
_NAMED = "Tensor! output_tensor, Tensor! input_tensor, any group"
MODS = ("torch.distributed", "c10d", "nccl")
FUNCTIONAL = "torch.distributed._functional_collectives"
FUNCTIONAL_OPS = "_c10d_functional"
"""The namespaces of those that return a new tensor: in Python, and of the ops behind them."""


def _spelled(*names: str, mods: tuple[str, ...] = MODS) -> tuple[str, ...]:
    return tuple(f"{mod}.{name}" for mod in mods for name in names)


def _flat(a: Args, name: str) -> tuple[Tensor, ...]:
    name = name if name in a.values else f"{name}_tensor"
    value = a.values.get(name)
    if isinstance(value, tuple) and any(isinstance(item, tuple) for item in value):
        return tuple(
            t for item in value if isinstance(item, tuple) for t in item if isinstance(t, Tensor)
        )
    if isinstance(value, Tensor):
        return (value,)
    return a.tensors(name)


def _params(
    a: Args, tensors: tuple[Tensor, ...], kind: str, ranks: int | None = None
) -> dict[str, object]:
    """Return what the report shows; the tensors are those whose bytes the algorithm moves."""
    ranks = _ranks(a) if ranks is None else ranks
    ranks = ranks if ranks is not None and ranks > 0 else None
    try:
        size = sum(map(tensor_bytes, tensors))
    except Unknown:
        return {"ranks": ranks}
    bus = None if ranks is None else bus_bytes(kind, size, ranks)
    return {"algo_bytes": size, "ranks": ranks, "bus_bytes": bus}


def _ranks(a: Args) -> int | None:
    for name in ("world_size", "group_size", "group"):
        value = a.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


# 24 read and 24 written of 4 bytes
@op(
    *_spelled("all_reduce", "allreduce_", "allreduce", "all_reduce_coalesced", "AllReduce"),
    *_spelled("all_reduce", "all_reduce_coalesced", mods=(FUNCTIONAL,)),
    signature="Tensor[] tensors, any op, any group",
    example=Example((_X,), flops=0, bytes=192, kwargs={"world_size": 4}),
)
def all_reduce(a: Args) -> Work:
    """Every rank ends with the sum of all."""
    tensors = _flat(a, "tensors")
    return Work(0, tensors, tensors, _params(a, tensors, ALL_REDUCE))


# 24 read or 24 written of 4 bytes: each rank does one of the two
@op(
    *_spelled("broadcast", "broadcast_", "Broadcast", "send", "recv", "isend", "irecv"),
    *_spelled("recv_", "reduce", "reduce_", "Reduce"),
    *_spelled("broadcast", mods=(FUNCTIONAL,)),
    signature="Tensor[] tensors, any peer, any group",
    example=Example((_X, 0), flops=0, bytes=96),
)
def one_way(a: Args) -> Work:
    """A rank either sends or receives; in a reduction most send."""
    tensors = _flat(a, "tensors")
    return Work(0, tensors, (), _params(a, tensors, ONE_WAY))


# 24 read, four times as many written of 4 bytes
@op(
    *_spelled("all_gather_into_tensor", "_all_gather_base", "_allgather_base_", "allgather_"),
    *_spelled("all_gather", "AllGather", "allgather_into_tensor_coalesced_", "all_gather_single"),
    *_spelled("all_gather_into_tensor_coalesced", "all_gather_single_coalesced"),
    signature=("Tensor! output, Tensor! input, any group", _NAMED, _LISTS),
    example=Example((_ALL, _X), flops=0, bytes=480),
)
def all_gather(a: Args) -> Work:
    """Every rank ends with the pieces of all."""
    out, pieces = _flat(a, "output"), _flat(a, "input")
    return Work(0, pieces, out, _params(a, out, ALL_GATHER, _ratio(out, pieces)))


# 96 read, a quarter written of 4 bytes
@op(
    *_spelled("reduce_scatter_tensor", "_reduce_scatter_base", "_reduce_scatter_base_"),
    *_spelled("reduce_scatter", "reduce_scatter_", "ReduceScatter", "reduce_scatter_single"),
    *_spelled("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"),
    signature=("Tensor! output, Tensor! input, any op, any group", _LISTS),
    example=Example((_X, _ALL), flops=0, bytes=480),
)
def reduce_scatter(a: Args) -> Work:
    """Every rank ends with its piece of the sum."""
    out, inputs = _flat(a, "output"), _flat(a, "input")
    return Work(0, inputs, out, _params(a, inputs, REDUCE_SCATTER, _ratio(inputs, out)))


def _ratio(large: tuple[Tensor, ...], small: tuple[Tensor, ...]) -> int | None:
    total, piece = sum(t.numel for t in large), sum(t.numel for t in small)
    return total // piece if piece else None


# 24 read and 24 written of 4 bytes
@op(
    *_spelled("all_to_all_single", "alltoall_base_", "all_to_all", "alltoall_", "AllToAll"),
    *_spelled("gather", "gather_", "gather_single", "gather_into_tensor", "scatter", "scatter_"),
    signature=("Tensor! output, Tensor! input, any group", _LISTS),
    example=Example((_X, _X), flops=0, bytes=192),
)
def all_to_all(a: Args) -> Work:
    """Every rank sends a piece to each."""
    out, inputs = _flat(a, "output"), _flat(a, "input")
    return Work(0, inputs, out, _params(a, inputs, ALL_TO_ALL))


# 24 read, four times as many written of 4 bytes
@op(
    *_spelled("all_gather_tensor", "all_gather_single", mods=(FUNCTIONAL,)),
    *_spelled("all_gather_tensor_autograd", "all_gather_single_autograd", mods=(FUNCTIONAL,)),
    *_spelled("all_gather_into_tensor_coalesced", mods=(FUNCTIONAL,)),
    *_spelled("all_gather_single_coalesced", mods=(FUNCTIONAL,)),
    signature="Tensor[] input, Value[] rest",
    example=Example((_X, 0), flops=0, bytes=480, collective={"size": 4}, op="all_gather_single"),
)
def gathered(a: Args) -> Work:
    """Every rank gets a new tensor with the pieces of all."""
    pieces, ranks = _flat(a, "input"), _known_ranks(a)
    out = tuple(like(tensor, (ranks * tensor.numel,)) for tensor in pieces)
    return Work(0, pieces, out, _params(a, out, ALL_GATHER, ranks))


# 96 read, a quarter written of 4 bytes
@op(
    *_spelled("reduce_scatter_tensor", "reduce_scatter_single", mods=(FUNCTIONAL,)),
    *_spelled("reduce_scatter_tensor_autograd", mods=(FUNCTIONAL,)),
    *_spelled("reduce_scatter_single_autograd", mods=(FUNCTIONAL,)),
    *_spelled("reduce_scatter_tensor_coalesced", mods=(FUNCTIONAL,)),
    *_spelled("reduce_scatter_single_coalesced", mods=(FUNCTIONAL,)),
    signature="Tensor[] input, Value[] rest",
    example=Example(
        (_ALL, "sum", 0), flops=0, bytes=480, collective={"size": 4}, op="reduce_scatter_single"
    ),
)
def scattered(a: Args) -> Work:
    """Every rank gets a new tensor with its piece of the sum."""
    inputs, ranks = _flat(a, "input"), _known_ranks(a)
    out = tuple(like(tensor, (tensor.numel // ranks,)) for tensor in inputs)
    return Work(0, inputs, out, _params(a, inputs, REDUCE_SCATTER, ranks))


def _known_ranks(a: Args) -> int:
    if ranks := _ranks(a):
        return ranks
    raise Unknown("number of ranks unknown")


# nothing but a signal
@op(
    *_spelled("barrier", "monitored_barrier", "wait"),
    *_spelled("wait_tensor", mods=(FUNCTIONAL, FUNCTIONAL_OPS)),
    signature="any group, Value[] rest",
    example=Example(flops=0, bytes=0),
)
def barrier(_: Args) -> Work:
    """Nothing is moved."""
    return Work(0)
