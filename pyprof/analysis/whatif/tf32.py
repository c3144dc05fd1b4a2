"""float32 matrix products and convolutions on Tensor Cores, in TF32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.back_test import tried
from pyprof.analysis.whatif.prediction import Prediction, Refusal

if TYPE_CHECKING:
    from pyprof.analysis.whatif.kernels import Kernels

CHANGE = "--dtype tf32"


def predict(kernels: Kernels) -> Prediction | Refusal:
    """Predict that products reach the same share of TF32's roof as of float32's."""
    context = kernels.context
    rows = np.flatnonzero(context.reason_startswith("TF32: off") & context.device_has("tf32"))
    if not len(rows):
        return Refusal(CHANGE, "no float32 products without Tensor Cores on a GPU that has TF32")
    gains = context.faster(rows, "tf32")
    known = np.isfinite(gains)
    if not known.any():
        return Refusal(CHANGE, "FLOPs or bytes of the products are unknown")
    rows, gains, outcomes = rows[known], gains[known], tried(CHANGE)
    return Prediction(
        change=CHANGE,
        kernels=kernels.retimed(rows, kernels.ns[rows] - np.maximum(gains, 0), outcomes.interval),
        rows=rows,
        formula="time x ratio of the roofs of float32 and TF32",
        assumption="products keep the share of the roof that they reach now",
        validation=outcomes.text,
        code="torch.set_float32_matmul_precision('high')",
    )
