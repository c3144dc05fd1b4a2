"""The families of ops, by which a report groups them and kernels are classified.

A formula states its own where it is registered, or its module states one for all of them by
`FAMILY = "..."`. Which kernels of a call do a family's arithmetic, `pyprof.gpu.kernel_roles` knows.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

OTHER = "other"

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "gemm": "matrix products",
        "conv": "convolutions",
        "attention": "attention",
        "moe": "mixtures of experts",
        "rnn": "recurrent layers",
        "ssm": "state spaces",
        "norm": "normalization",
        "softmax": "softmax",
        "loss": "losses",
        "pointwise": "element-wise ops, activations",
        "quantization": "to and from narrow numbers",
        "reduction": "sums, means, extremes",
        "scan": "running sums and products",
        "pool": "pooling",
        "resample": "interpolation, sampling of grids, padding",
        "embedding": "embeddings and bags of them",
        "index": "gathering, scattering, sorting",
        "distance": "distances between vectors",
        "fft": "Fourier transforms",
        "linalg": "factorisations, solvers, spectra",
        "random": "random numbers, dropout",
        "optimizer": "optimizers, ops on lists of tensors",
        "comm": "communication",
        "copy": "copies, casts, joining",
        "fill": "fills",
        "view": "views, and the gradients of their parts",
        "fused": "ops that a compiler fused",
        OTHER: "unknown: every kernel that computes may do the arithmetic",
    }
)
"""Every family, and what is in it."""


def checked(family: str) -> str:
    """Return the family. Raises ValueError for an unknown one."""
    if family not in FAMILIES:
        raise ValueError(f"no family {family!r} of ops; families are {', '.join(FAMILIES)}")
    return family
