"""Attention of separate kernels: product, softmax, product, found by the sizes of their tensors.

A router of experts also has a softmax after a product, but no product with narrow values after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.gpu.peaks.efficiency import efficiency
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.arrays import Int64Array, Mask
    from pyprof.prof.table import KernelClass

MAX_WIDTH = 256
"""Maximum width of a head in fused kernels; a router of experts multiplies wider matrices."""
ROOF_SHARE = 0.17
"""Share of the roofline that fused kernels reach on cards that were not measured: 0.15 to 0.31 in
captures, near the low end in those of the back-test.
"""
MIN_QUERIES, MIN_WIDTH = 64, 32
"""Below these, no fused kernel was seen to be faster."""
_BYTES = 2
"""Bytes of an element; in float32 fused kernels were not faster."""
_MAX_DISTANCE = 24
"""Kernels of one stream between a product and its softmax: masks and positions are made there."""
_ROLES = (
    *(Role.ELEMENTWISE, Role.RANDOM, Role.COPY, Role.LAYOUT, Role.FILL, Role.INDEX),
    *(Role.REDUCE, Role.SOFTMAX),
)


class Sizes(NamedTuple):
    """Batch (times heads), rows, columns and inner size of the product in each row; or MISSING."""

    batch: Int64Array
    m: Int64Array
    n: Int64Array
    k: Int64Array


class AttentionCall(NamedTuple):
    """One softmax between two products."""

    softmax: int
    """The row of the softmax."""
    rows: tuple[int, ...]
    """All rows that a fused kernel replaces."""
    batch: int
    queries: int
    keys: int
    width: int
    """The width of queries and keys."""
    value_width: int
    backward: bool

    @property
    def flops(self) -> int:
        """FLOPs of the products; a fused backward pass computes the first product again."""
        pairs = self.batch * self.queries * self.keys
        if self.backward:
            return 2 * pairs * (3 * self.width + 2 * self.value_width)
        return 2 * pairs * (self.width + self.value_width)

    @property
    def elements(self) -> int:
        """Elements of queries, keys, values and output, and in backward of their gradients."""
        ends = (self.queries + self.keys) * (self.width + self.value_width)
        return self.batch * ends * (2 if self.backward else 1)


def suits(call: AttentionCall) -> bool:
    """Whether a fused kernel of such sizes was seen to be faster."""
    return min(call.queries, call.keys) >= MIN_QUERIES and call.width >= MIN_WIDTH


def dtype_of(context: RuleContext, call: AttentionCall) -> str | None:
    """Return the type of a call's products; None if unknown."""
    kernel: KernelClass = context.table.classified.at(call.rows[0])
    return kernel.dtype


def fused_ns(context: RuleContext, call: AttentionCall, dtype: str) -> float:
    """Return a fused kernel's time at a share of the roof, moving each tensor once; or NaN."""
    peaks = context.table.devices.at(call.softmax)
    flops = peaks.flops(dtype, tensor_core=True) if peaks else None
    if peaks is None or flops is None or peaks.bandwidth is None:
        return float("nan")
    moved = _BYTES * call.elements / peaks.bandwidth.value
    names = context.table.records.dictionary("gpu")
    name = names.values[int(names.index[call.softmax])]
    share = efficiency(name, "attention", "float16") or ROOF_SHARE
    return float(max(call.flops / flops.value, moved) / share * NS_PER_S)


def attention_calls(context: RuleContext) -> list[AttentionCall]:
    """Return every call whose softmax has the sizes of the products before and after it."""
    order, same = context.by_stream
    softmaxes = np.flatnonzero((context.role(Role.SOFTMAX) & (context.elements > 0))[order])
    params = context.table.costs.params
    every = np.array([*map(_sizes, params.values), (MISSING,) * 4], np.int64)
    sizes = Sizes(*every[params.index].T)
    # matrix products that do their op's arithmetic
    product = context.role(Role.GEMM, Role.TRITON) & context.family("gemm")
    product &= ~context.table.costs.helper
    begins = np.r_[0, np.flatnonzero(~same) + 1, len(order)]
    movable = context.role(*_ROLES)
    movable |= context.kind(schema.CPU) & context.family("pointwise", "copy")  # rows without roles
    calls: list[AttentionCall] = []
    taken = np.zeros(len(context.ns), bool)
    for index in softmaxes.tolist():
        first = max(int(begins[np.searchsorted(begins, index, "right") - 1]), index - _MAX_DISTANCE)
        last = min(int(begins[np.searchsorted(begins, index, "right")]), index + _MAX_DISTANCE + 1)
        before, after = order[first:index][::-1], order[index + 1 : last]
        call = _call(context, int(order[index]), before, after, sizes, product & ~taken, movable)
        if call is not None:
            taken[[*call.rows]] = True
            calls.append(call)
    return calls


def _call(
    context: RuleContext,
    softmax: int,
    before: Int64Array,
    after: Int64Array,
    sizes: Sizes,
    product: Mask,
    movable: Mask,
) -> AttentionCall | None:
    """Match the nearest products: B x M x N elements before the softmax, B x M x K after it."""
    elements = int(context.elements[softmax])
    # logits, their loss's softmax and the gradient from them have the same sizes, in two directions
    direction = context.table.records.dictionary("dir").index
    narrow = product & (np.minimum(sizes.k, sizes.n) > 0) & (direction == direction[softmax])
    scores = narrow & (sizes.batch * sizes.m * sizes.n == elements) & (sizes.k <= MAX_WIDTH)
    values = narrow & (sizes.batch * sizes.m * sizes.k == elements) & (sizes.n <= MAX_WIDTH)
    firsts, seconds = np.flatnonzero(scores[before]), np.flatnonzero(values[after])
    if not len(firsts) or not len(seconds):
        return None
    one, other = int(before[firsts[0]]), int(after[seconds[0]])
    if sizes.batch[one] != sizes.batch[other]:
        return None
    backward = "backward" in (context.op.at(softmax) or "")
    products = [one, other]
    begin, end = int(firsts[0]), int(seconds[0])
    if backward:  # gradients of the values, and of the second factor of the scores
        products += before[np.flatnonzero(values[before])[:1]].tolist()
        products += after[seconds[1:2]].tolist()
        end = int(seconds[:2][-1])
    between = np.concatenate([before[:begin], after[:end]])
    inside = between[(movable & (context.elements == elements))[between]]
    return AttentionCall(
        softmax=softmax,
        rows=(*products, softmax, *inside.tolist()),
        batch=int(sizes.batch[one]),
        queries=int(sizes.m[one]),
        keys=int(sizes.n[one]),
        width=int(sizes.k[one]),
        value_width=int(sizes.n[other]),
        backward=backward,
    )


def _sizes(params: Mapping[str, object]) -> tuple[int, ...]:
    sizes = [params.get(key, 1 if key == "B" else None) for key in ("B", "M", "N", "K")]
    known = [size for size in sizes if isinstance(size, int)]
    return tuple(known) if len(known) == len(sizes) else (MISSING,) * len(sizes)
