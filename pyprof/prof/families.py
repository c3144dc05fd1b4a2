"""The family of the op that kernels work for, as its formula states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.ops import registry

if TYPE_CHECKING:
    from pyprof.prof.calls.attributed_call import AttributedCall

PRODUCTS = frozenset({"gemm", "conv"})
"""Families whose arithmetic is one matrix product or convolution."""

MOVES = frozenset({"copy", "fill", "index", "embedding", "resample"})
"""Families whose kernels may move elements without a look at what they are."""


def family(work: AttributedCall) -> str:
    """Name the family of the op that kernels work for; "" where no op is known."""
    model = registry.find(work.call, work.direction) if work.call else None
    return model.family if model is not None else ""
