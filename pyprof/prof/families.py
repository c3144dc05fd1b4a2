"""The family of an op's formula, as kernel roles know it, by its file in pyprof.ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.gpu.roles import FAMILY_RANKS
from pyprof.ops import registry

if TYPE_CHECKING:
    from pyprof.prof.situations import Work

PRODUCTS = frozenset({"gemm", "conv"})
"""Families whose arithmetic is one matrix product or convolution."""

_FAMILIES = {
    # file: family, where they are not called the same; a file that is not here has none
    "activations": "pointwise",
    "attention_backward": "attention",
    "attention_kernels": "attention",
    "building": "copy",
    "collectives": "comm",
    "conv_vendors": "conv",
    "copies": "copy",
    "draws": "random",
    "einsum": "gemm",
    "embeddings": "index",
    "extremes": "reduction",
    "fills": "fill",
    "foreach": "optimizer",
    "gemm_packed": "gemm",
    "gemm_scaled": "gemm",
    "indexing": "index",
    "indexing_backward": "index",
    "losses": "loss",
    "losses_ctc": "loss",
    "losses_margin": "loss",
    "normalization": "norm",
    "normalization_groups": "norm",
    "normalization_parts": "norm",
    "optimizers": "optimizer",
    "pooling": "pool",
    "quantization": "pointwise",
    "random_ops": "random",
    "recurrent": "rnn",
    "reductions": "reduction",
    "slices": "copy",
    "sorting": "index",
    "subscript": "index",
    "unpooling": "pool",
    "windows": "copy",
}


def family(work: Work) -> str:
    """Name the family of the op that kernels work for; "" for one whose kernels are all alike."""
    model = registry.find(work.call, work.direction) if work.call else None
    return family_of(model) if model is not None else ""


def family_of(model: registry.OpModel) -> str:
    """Name the family of a formula; "" for a user's own."""
    package, _, file = model.formula.__module__.rpartition(".")
    if package != "pyprof.ops":
        return ""
    return _FAMILIES.get(file, file if file in FAMILY_RANKS else "")
