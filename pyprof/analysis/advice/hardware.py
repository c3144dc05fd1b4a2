"""Advice from occupancy and counters: an incomplete last wave, excess DRAM traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.scope import COSTS, COUNTERS, GPU, OPS, SMS
from pyprof.gpu.eligible import FAMILIES
from pyprof.gpu.roofline import LAUNCH_NS, LIMITS
from pyprof.prof.kernels.counter_rates import excess

if TYPE_CHECKING:
    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext

_MAX_WAVES = 4.0
"""With more waves than this, the last one hardly matters."""
_FILLED = 0.75
_MEMORY = LIMITS.index("memory")


@rule(
    "a persistent kernel, whose blocks take tiles as they come",
    "memory limits it: fewer blocks then share the same bandwidth",
    "a single wave, which low_occupancy tells, or so many that the last hardly matters",
    "the kernel is nearer to its peak than such a tail allows",
    about="thread blocks",
    needs=(GPU, SMS, OPS),
)
def tail(context: RuleContext) -> Advice | None:
    """Find products whose last wave of blocks fills less of the GPU than the others."""
    waves = context.table.occupancy.waves
    with np.errstate(invalid="ignore"):
        filled = waves / np.ceil(waves)
        few = (waves > 1) & (waves < _MAX_WAVES) & (filled < _FILLED) & (context.ns >= LAUNCH_NS)
        few &= context.table.roofline.share < filled
    limited = context.table.roofline.limit == _MEMORY
    rows = np.flatnonzero(context.family(*FAMILIES) & few & ~limited & ~context.persistent)
    return context.advice(
        "the last wave of thread blocks leaves most of the GPU idle",
        "choose sizes, or a tile, whose blocks fill whole waves; see the columns occ and waves",
        rows,
        context.most(rows, context.ns[rows] * (1 - filled[rows])),
        detail=[f"{count:.2f} waves" for count in waves[rows].tolist()],
    )


_EXCESS = 1.5


@rule(
    "arithmetic limits it",
    "nothing was measured",
    about="DRAM traffic",
    needs=(GPU, COUNTERS, COSTS),
)
def excess_traffic(context: RuleContext) -> Advice | None:
    """Find memory-bound kernels that, by counters, move many more bytes than their ops need."""
    if not context.table.measured.any:
        return None
    ratio = excess(context.table)
    with np.errstate(invalid="ignore"):
        much = (ratio >= _EXCESS) & (context.table.roofline.limit == _MEMORY)
    rows = np.flatnonzero(context.chosen & much)
    return context.advice(
        "kernels move more bytes than their ops need, by counters",
        "use contiguous inputs, tiles that reuse data in cache, or a fused implementation",
        rows,
        context.most(rows, context.ns[rows] * (1 - 1 / ratio[rows])),
        detail=[f"{times:.1f} times the least" for times in ratio[rows].tolist()],
    )
