"""float32 matrix products and convolutions on Tensor Cores, in TF32."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.whatif.prediction import Prediction, Refusal, span

if TYPE_CHECKING:
    from pyprof.analysis.advice.case import Case

CHANGE = "--dtype tf32"
_REAL = (0.9, 1.1)
"""Real gain by the predicted one: 0.94 and 0.97 on pairs, and the noise of two runs."""


def predict(case: Case) -> Prediction | Refusal:
    """Predict products at the share of TF32's peak that they reach of float32's."""
    rows = np.flatnonzero(case.says_why("TF32: off") & case.device_has("tf32"))
    if not len(rows):
        return Refusal(CHANGE, "no float32 products without Tensor Cores on a GPU that has TF32")
    gains = case.faster(rows, "tf32")
    known = np.isfinite(gains)
    if not known.any():
        return Refusal(CHANGE, "FLOPs or bytes of the products are unknown")
    return Prediction(
        change=CHANGE,
        kernels_ns=span(case.ns, float(np.maximum(gains[known], 0).sum()), *_REAL),
        rows=rows[known],
        formula="time x ratio of the roofs of float32 and TF32",
        assumption="products keep the share of the roof that they reach now",
        validation="2 pairs (not repeated by the back-test), real by predicted gain 0.94 and 0.97",
        code="torch.set_float32_matmul_precision('high')",
    )
