"""Launches with too few thread blocks to fill the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.roofline import LAUNCH_NS
from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.registry import Advice


@rule
def low_occupancy(case: Case) -> Advice | None:
    """Find kernels with fewer blocks than the GPU has SMs that are long enough to matter.

    With every SM at work they would take as many times less as SMs stand idle, at best.
    """
    records = case.table.records
    grid, gpu = records.coded("grid"), records.coded("gpu")
    blocks = np.array([*(int(np.prod(value)) if value else 0 for value in grid.values), 0])
    sms = np.array([case.table.device_of(name).sm_count or 0 for name in (*gpu.values, None)])
    filled = blocks[grid.index] / np.maximum(sms[gpu.index], 1)
    few = (filled > 0) & (filled < 1) & (case.ns >= LAUNCH_NS) & ~case.is_one("dir", "comm")
    rows = np.flatnonzero(case.chosen & few & (sms[gpu.index] > 0))
    return case.advice(
        "low_occupancy",
        "kernels have fewer thread blocks than the GPU has SMs",
        "larger batches, batched or grouped ops in place of loops, other streams beside them",
        rows,
        case.most(rows, case.ns[rows] * (1 - filled[rows])),
    )
