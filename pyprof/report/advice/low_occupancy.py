"""Launches with too few thread blocks to fill the GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.roofline import LAUNCH_NS
from pyprof.report.advice.registry import rule
from pyprof.report.timeline import COMMUNICATION, sorts

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


_ALMOST_ALL = 0.9
"""From this share of the SMs on, the others are kept free, or left over by the size of clusters."""
_PERSISTENT = re.compile(
    r"nvjet|persist|stream_?k|device_kernel|fmha\w*Sm(?:90|100)|deep_gemm", re.IGNORECASE
)
"""Kernels whose blocks go from tile to tile, as many blocks as their author wants SMs."""


@rule(
    "a collective, whose blocks are its channels",
    "a persistent kernel, which takes the SMs that it wants",
    "all but a few SMs have a block",
)
def low_occupancy(case: Case) -> Advice | None:
    """Find kernels with fewer blocks than the GPU has SMs that are long enough to matter.

    With every SM at work they would take as many times less as SMs stand idle, at best.
    """
    records = case.table.records
    grid, gpu = records.coded("grid"), records.coded("gpu")
    blocks = np.array([*(int(np.prod(value)) if value else 0 for value in grid.values), 0])
    sms = np.array([case.table.device_of(name).sm_count or 0 for name in (*gpu.values, None)])
    filled = blocks[grid.index] / np.maximum(sms[gpu.index], 1)
    few = (filled > 0) & (filled < _ALMOST_ALL) & (case.ns >= LAUNCH_NS) & (sms[gpu.index] > 0)
    by_design = (sorts(records) == COMMUNICATION) | case.named(_PERSISTENT)
    rows = np.flatnonzero(case.chosen & few & ~by_design)
    return case.advice(
        "low_occupancy",
        "kernels have fewer thread blocks than the GPU has SMs",
        "larger batches, batched or grouped ops in place of loops, other streams beside them",
        rows,
        case.most(rows, case.ns[rows] * (1 - filled[rows])),
    )
