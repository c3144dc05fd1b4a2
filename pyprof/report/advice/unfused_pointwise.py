"""Chains of element-wise kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.registry import rule
from pyprof.report.advice.runs import fusible

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.registry import Advice


@rule
def unfused_pointwise(case: Case) -> Advice | None:
    """Find chains of element-wise kernels over tensors of one size, outside the optimizer."""
    rows, won = fusible(case, case.chosen & ~case.is_one("dir", "optim", "comm"))
    return case.advice(
        "unfused_pointwise",
        "element-wise kernels follow each other on tensors of one size",
        "torch.compile fuses them; or a fused op of the library (bias + GELU, norm + residual)",
        rows,
        case.most(rows, won),
    )
