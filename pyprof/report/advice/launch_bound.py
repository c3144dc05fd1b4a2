"""Kernels shorter than it takes the host to launch them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.gaps import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.api import LAUNCH

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "what came late is the replay of a CUDA graph",
    "the host was loading data",
)
def launch_bound(case: Case) -> Advice | None:
    """Find gaps in which the host was launching or dispatching; the evidence is what came late."""
    _, rows, idle_ns = idle_for(case, LAUNCH)
    eager = ~case.replays[rows]
    rows, idle_ns = rows[eager], idle_ns[eager]
    return case.advice(
        "launch_bound",
        "the GPU waits for the host to launch short kernels",
        "CUDA graphs, torch.compile(mode='reduce-overhead'), larger batches, fused ops",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
