"""Kernels far from what the device could do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.gpu.roofline import LAUNCH_NS
from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice

_FAR = 0.3
_GOOD = 0.6
"""A share of the roofline that well-written kernels reach."""


@rule(
    "too short: a launch and its drain take the time",
    "too few blocks, which low_occupancy tells",
)
def under_roof(case: Case) -> Advice | None:
    """Find kernels below 30 % of their roofline, neither tiny nor short of blocks; gain to 60 %."""
    share = case.table.roofline.share
    limit = case.table.bound
    bound = np.array([*(text in ("compute", "memory") for text in limit.values), False])
    with np.errstate(invalid="ignore"):
        far = case.chosen & bound[limit.index] & (share < _FAR) & (case.ns >= LAUNCH_NS)
    off = pc.fill_null(pc.starts_with(case.why, "TF32: off"), fill_value=False)  # told apart
    rows = np.flatnonzero(far & case.kind(schema.KERNEL) & ~np.asarray(off))
    return case.advice(
        "under_roof",
        "kernels are far below what their work needs of the GPU",
        "torch.compile, contiguous inputs, a fused or vendor implementation of the op",
        rows,
        case.most(rows, case.ns[rows] * (1 - share[rows] / _GOOD)),
    )
