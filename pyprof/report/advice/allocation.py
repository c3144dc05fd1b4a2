"""Memory asked of the driver while the GPU waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.gaps import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.api import ALLOC

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "the GPU had work meanwhile",
)
def allocation(case: Case) -> Advice | None:
    """Find gaps in which the host allocated or freed GPU memory; the evidence is what came next."""
    _, rows, idle_ns = idle_for(case, ALLOC)
    return case.advice(
        "allocation",
        "the GPU waits for memory to be allocated or freed",
        "capture after warm-up; if it goes on, keep shapes alike, do not call empty_cache(), and"
        " set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
