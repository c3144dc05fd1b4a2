"""float32 in TF32, bfloat16 or float16: products by their roofs, others by measured shares."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.precision import off_tf32
from pyprof.analysis.advice.rule_context import MIN_KNOWN
from pyprof.analysis.attention_calls import ROOF_SHARE
from pyprof.analysis.back_test import tried
from pyprof.analysis.whatif.kernels import NO_BANDWIDTH, Prediction
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.whatif.kernels import Kernels
    from pyprof.arrays import Int64Array

TF32 = "--dtype tf32"
HALF_TYPES = {"bf16": "bfloat16", "fp16": "float16"}
_FLOAT32 = ("float32", "tf32")
_NARROWER = 2
SHARES = {
    **dict.fromkeys((Role.ELEMENTWISE, Role.RANDOM, Role.SOFTMAX, Role.LOSS, Role.FILL), 0.757),
    **dict.fromkeys((Role.COPY, Role.LAYOUT), 0.865),
    Role.NORM: 0.848,
}
"""Time in bfloat16 by time in float32, of Segment Anything's kernels on A100 (back-test): they
gain 0.44 to 0.53, 0.26 to 0.28 and 0.29 to 0.32 of half. Reductions, pooling and indexing stay."""
_TENSOR_CORE_CONV = 0.78
"""Time of convolutions that already run in TF32, relative to it; by the roof it would be half."""
HALF_OUTCOMES = "--dtype bf16"
"""The key of the outcomes, also for float16: both have the same peak."""


def predict_tf32(kernels: Kernels) -> Prediction | str:
    """Predict that products reach the same share of TF32's roof as of float32's."""
    context = kernels.context
    rows = np.flatnonzero(off_tf32(context))
    if not len(rows):
        return "no float32 products without Tensor Cores on a GPU that has TF32"
    if np.isnan(context.bandwidth).all():
        return NO_BANDWIDTH
    gains = context.faster(rows, "tf32")
    known = np.isfinite(gains)
    if not known.any():
        return "FLOPs or bytes of the products are unknown"
    rows, gains, outcomes = rows[known], gains[known], tried(TF32)
    return Prediction(
        change=TF32,
        kernels=replace(
            kernels.retimed(rows, kernels.ns[rows] - np.maximum(gains, 0), outcomes.interval),
            dtype="tf32",
        ),
        rows=rows,
        formula="time x ratio of the roofs of float32 and TF32",
        assumption="products keep the share of the roof that they reach now",
        validation=outcomes.text,
        code="torch.set_float32_matmul_precision('high')",
    )


def predict_half(kernels: Kernels, short: str) -> Prediction | str:
    """Predict products, attention and kernels that move bytes; others stay as they are."""
    context, dtype = kernels.context, HALF_TYPES[short]
    is_float = context.class_matches(lambda entry: entry.dtype in _FLOAT32)
    wanted = is_float & context.device_has(dtype) & ~context.is_one("dir", "optim", "comm")
    if not wanted.any():
        return f"no float32 kernels on a GPU with Tensor Cores for {dtype}"
    if np.isnan(context.bandwidth).all():
        return NO_BANDWIDTH
    tensor_core = context.class_matches(lambda entry: entry.dtype == "tf32")
    conv = wanted & context.role(Role.CONV) & tensor_core
    products = np.flatnonzero(wanted & context.role(Role.GEMM, Role.CONV) & ~conv)
    fused = np.flatnonzero(wanted & context.role(Role.ATTENTION))
    after = kernels.ns.copy()
    after[products] -= np.maximum(context.faster(products, dtype, narrower=_NARROWER), 0)
    after[fused] = np.fmin(_attention_ns(kernels, fused, dtype), after[fused])
    after[conv] *= _TENSOR_CORE_CONV
    for role, share in SHARES.items():
        after[wanted & context.role(role)] *= share
    unknown = np.isnan(after)
    if kernels.ns[unknown].sum() > (1 - MIN_KNOWN) * kernels.ns[wanted].sum():
        return "FLOPs or bytes of too many products are unknown"
    rows = np.flatnonzero(wanted & ~unknown & (after != kernels.ns))
    outcomes = tried(HALF_OUTCOMES)
    retimed = kernels.retimed(rows, after[rows], outcomes.interval)
    return Prediction(
        change=f"--dtype {short}",
        kernels=replace(
            retimed,
            dtype=dtype,
            bytes=np.where(wanted, retimed.bytes / _NARROWER, retimed.bytes),
        ),
        rows=rows,
        formula=f"products: time x ratio of the roofs; attention: roof / {ROOF_SHARE};"
        " point-wise kernels x 0.76, copies x 0.87, norms x 0.85",
        assumption="inputs, weights and activations are in the type; optimizer and sums stay",
        validation=outcomes.text,
        code=f"with torch.autocast('cuda', torch.{dtype}):",
    )


def _attention_ns(kernels: Kernels, rows: Int64Array, dtype: str) -> NDArray[np.float64]:
    """Return the time of fused attention at the share of the roof it reaches; NaN if unknown."""
    context = kernels.context
    flops = context.table.costs.flops[rows]
    computing = np.where(flops >= 0, flops, np.nan) / context.peak_flops(dtype)[rows]
    moving = kernels.bytes[rows] / _NARROWER / context.bandwidth[rows]
    return np.asarray(np.maximum(computing, moving) / ROOF_SHARE * NS_PER_S)
