"""float32 products that TF32 would speed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "the GPU has no TF32: Volta, Turing",
    "the kernel used Tensor Cores",
)
def tf32(case: Case) -> Advice | None:
    """Find float32 matrix products and convolutions on CUDA cores of a GPU that has TF32."""
    off = pc.fill_null(pc.starts_with(case.why, "TF32: off"), fill_value=False)
    rows = np.flatnonzero(case.chosen & np.asarray(off) & case.device_has("tf32"))
    return case.advice(
        "tf32",
        "float32 matrix products and convolutions run without Tensor Cores",
        "torch.set_float32_matmul_precision('high') for products,"
        " torch.backends.cudnn.allow_tf32 = True for convolutions; or autocast to bfloat16",
        rows,
        case.most(rows, case.faster(rows, "tf32")),
    )
