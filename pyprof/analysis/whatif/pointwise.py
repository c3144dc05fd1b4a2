"""Chains of point-wise kernels as one kernel each, as torch.compile fuses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.back_test import tried
from pyprof.analysis.pointwise_chains import bandwidths, chain_ns, pointwise_chains
from pyprof.analysis.whatif.prediction import Prediction, Refusal

if TYPE_CHECKING:
    from pyprof.analysis.whatif.kernels import Kernels

CHANGE = "--fuse pointwise"
_MIN_KNOWN = 0.8


def predict(kernels: Kernels) -> Prediction | Refusal:
    """Predict the time of chains whose outer inputs and outputs are moved once."""
    context = kernels.context
    rows, chain = pointwise_chains(context, ~kernels.attention)
    if not len(rows):
        return Refusal(CHANGE, "no two point-wise kernels follow one another on a stream")
    moved, ns = kernels.bytes[rows], kernels.ns[rows]
    known = np.isfinite(moved)
    if ns[known].sum() < _MIN_KNOWN * ns.sum():
        return Refusal(CHANGE, "the bytes of too many point-wise kernels are unknown")
    bandwidth = bandwidths(context)[rows]
    if np.isnan(bandwidth).any():
        return Refusal(CHANGE, "the GPU's bandwidth is unknown")
    fused = chain_ns(ns, moved, chain, bandwidth)
    now = np.bincount(chain, ns)
    share = np.minimum(fused / np.maximum(now, 1), 1)
    outcomes = tried(CHANGE)
    return Prediction(
        change=CHANGE,
        kernels=kernels.retimed(rows, ns * share[chain], outcomes.interval),
        rows=rows,
        formula="a chain's outer inputs and outputs / (0.75 x bandwidth), at least 2.5 us",
        assumption="each chain of point-wise kernels, norms, reductions and copies becomes one",
        validation=outcomes.text,
        code="model = torch.compile(model)",
    )
