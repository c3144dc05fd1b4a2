"""`.item()`, `.cpu()` and other waits for the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.gaps import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.api import SYNC

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "more work was queued when the wait ended",
)
def synchronisation(case: Case) -> Advice | None:
    """Find gaps after the host waited for the GPU; the evidence is what it waited for."""
    rows, _, idle_ns = idle_for(case, SYNC)
    return case.advice(
        "synchronisation",
        "the host waits for the GPU, which then has nothing to do",
        "keep .item(), .cpu(), print and comparisons of tensors out of the step;"
        " below is the work that was waited for",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
