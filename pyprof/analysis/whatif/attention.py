"""Attention calls made of separate kernels, each as one fused kernel."""

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
from pyprof.analysis.whatif.prediction import Prediction, Refusal
from pyprof.gpu.kernel_dtypes import HALF

if TYPE_CHECKING:
    from pyprof.analysis.whatif.kernels import Kernels

CHANGE = "--fuse attention"


def predict(kernels: Kernels) -> Prediction | Refusal:
    """Replace each call by a kernel that moves inputs and output once, at a share of the roof."""
    context = kernels.context
    calls = attention_calls(context)
    if not calls:
        return Refusal(CHANGE, "no softmax lies between two products of its size")
    dtypes = [kernels.dtype or dtype_of(context, call) for call in calls]
    half = [(call, dtype) for call, dtype in zip(calls, dtypes, strict=True) if dtype in HALF]
    if not half:
        return Refusal(CHANGE, "fused attention was not faster in float32; add --dtype bf16")
    suited = [(call, str(dtype)) for call, dtype in half if suits(call)]
    if not suited:
        return Refusal(
            CHANGE, f"all {len(calls)} calls have fewer than {MIN_QUERIES} queries"
            f" or heads under {MIN_WIDTH}",
        )  # fmt: skip
    fused = np.array([fused_ns(context, call, dtype) for call, dtype in suited])
    if np.isnan(fused).any():
        return Refusal(CHANGE, "the GPU's peaks are unknown")
    rows = np.concatenate([np.array(call.rows, np.int64) for call, _ in suited])
    counts = np.array([len(call.rows) for call, _ in suited])
    now = np.add.reduceat(kernels.ns[rows], np.r_[0, np.cumsum(counts)[:-1]])
    times = np.repeat(np.minimum(fused / np.maximum(now, 1), 1), counts) * kernels.ns[rows]
    left = len(calls) - len(suited)
    replaced = kernels.attention.copy()
    replaced[rows] = True
    outcomes = tried(CHANGE)
    return Prediction(
        change=CHANGE,
        kernels=replace(kernels.retimed(rows, times, outcomes.interval), attention=replaced),
        rows=rows,
        formula=f"the roof of each call's products, inputs and output / the share that fused"
        f" kernels reach ({ROOF_SHARE}, or as measured)",
        assumption=f"{len(suited)} of {len(calls)} calls are fused"
        + (f"; {left} stay: fewer than {MIN_QUERIES} queries, heads under {MIN_WIDTH},"
           " or float32" if left else ""),
        validation=outcomes.text,
        code="torch.nn.functional.scaled_dot_product_attention(q, k, v)",
    )  # fmt: skip
