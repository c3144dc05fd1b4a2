"""Kernels fused into one: chains of point-wise kernels, and attention in separate kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.attention_calls import (
    MIN_QUERIES,
    MIN_WIDTH,
    ROOF_SHARE,
    attention_calls,
    dtype_of,
    fused_ns,
    suits,
)
from pyprof.analysis.back_test import tried
from pyprof.analysis.pointwise_chains import chain_ns, pointwise_chains
from pyprof.analysis.whatif.kernels import NO_BANDWIDTH, Prediction
from pyprof.gpu.kernel_dtypes import HALF

if TYPE_CHECKING:
    from pyprof.analysis.whatif.kernels import Kernels

ATTENTION, POINTWISE = "--fuse attention", "--fuse pointwise"


def predict_attention(kernels: Kernels) -> Prediction | str:
    """Replace each call by a kernel that moves inputs and output once, at a share of the roof."""
    context = kernels.context
    calls = attention_calls(context)
    if not calls:
        return "no softmax lies between two products of its size"
    own = [dtype_of(context, call) for call in calls]
    dtypes = [dtype if dtype in HALF else kernels.dtype for dtype in own]
    half = [(call, dtype) for call, dtype in zip(calls, dtypes, strict=True) if dtype in HALF]
    if not half:
        return "fused attention was not faster in float32; add --dtype bf16 or fp16"
    suited = [(call, str(dtype)) for call, dtype in half if suits(call)]
    if not suited:
        return (
            f"all {len(calls)} calls have fewer than {MIN_QUERIES} queries"
            f" or heads under {MIN_WIDTH}"
        )
    fused = np.array([fused_ns(context, call, dtype) for call, dtype in suited])
    if np.isnan(fused).any():
        return "the GPU's peaks are unknown"
    rows_of = [np.array(call.rows, np.int64) for call, _ in suited]
    share = fused / np.maximum([kernels.ns[rows].sum() for rows in rows_of], 1)
    wins = np.flatnonzero(share < 1).tolist()
    if not wins:
        return "no attention would be faster fused"
    rows = np.concatenate([rows_of[call] for call in wins])
    times = np.concatenate([share[call] * kernels.ns[rows_of[call]] for call in wins])
    replaced = kernels.attention.copy()
    replaced[rows] = True
    outcomes = tried(ATTENTION)
    return Prediction(
        change=ATTENTION,
        kernels=replace(kernels.retimed(rows, times, outcomes.interval), attention=replaced),
        rows=rows,
        formula=f"the roof of each call's products, inputs and output / the share that fused"
        f" kernels reach ({ROOF_SHARE}, or as measured)",
        assumption=f"fused calls: {len(wins)} of {len(calls)}"
        + (f"; others have fewer than {MIN_QUERIES} queries, heads under {MIN_WIDTH} or float32,"
           " or are as fast" if len(wins) < len(calls) else ""),
        validation=outcomes.text,
        code="torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    )  # fmt: skip


def predict_pointwise(kernels: Kernels) -> Prediction | str:
    """Predict the time of chains whose outer inputs and outputs are moved once."""
    context = kernels.context
    if np.isnan(context.bandwidth).all():  # nor are a CPU's ops known as point-wise kernels
        return NO_BANDWIDTH
    rows, chain = pointwise_chains(context, ~kernels.attention)
    if not len(rows):
        return "no two point-wise kernels follow one another on a stream"
    moved, ns = kernels.bytes[rows], kernels.ns[rows]
    if not context.sized(rows):
        return "the bytes of too many point-wise kernels are unknown"
    bandwidth = context.bandwidth[rows]
    if np.isnan(bandwidth).any():
        return NO_BANDWIDTH
    fused = chain_ns(ns, moved, chain, bandwidth)
    now = np.bincount(chain, ns)
    wins = (fused < now)[chain]
    if not wins.any():
        return "no chain of point-wise kernels would be faster as one"
    rows, times = rows[wins], (ns * (fused / np.maximum(now, 1))[chain])[wins]
    outcomes = tried(POINTWISE)
    return Prediction(
        change=POINTWISE,
        kernels=kernels.retimed(rows, times, outcomes.interval),
        rows=rows,
        formula="a chain's outer inputs and outputs / (0.75 x bandwidth), at least 2.5 us",
        assumption="each chain of point-wise kernels, norms, reductions and copies becomes one"
        " where that is faster",
        validation=outcomes.text,
        code="model = torch.compile(model)" if context.of_pytorch else "one kernel for each chain",
    )
