"""An optimizer that takes many kernels a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.registry import rule
from pyprof.report.advice.runs import fusible

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "one kernel takes many parameters: foreach, fused",
)
def unfused_optimizer(case: Case) -> Advice | None:
    """Find element-wise kernels of the optimizer that work on one parameter after the other."""
    rows, won = fusible(case, case.is_one("dir", "optim"))
    return case.advice(
        "unfused_optimizer",
        "the optimizer takes several kernels for each parameter",
        "fused=True (or foreach=True) in torch.optim's constructors",
        rows,
        case.most(rows, won),
    )
