"""Kernels loaded for their first launch, which a later step does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.gaps import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.api import LOAD

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "the GPU had work meanwhile: the launch waited for room in its queue",
)
def kernel_loading(case: Case) -> Advice | None:
    """Find gaps in which kernels were loaded; the evidence is what was launched first."""
    _, rows, idle_ns = idle_for(case, LOAD)
    return case.advice(
        "kernel_loading",
        "single launches take over 1 ms: kernels are loaded, or the profiler writes",
        "once the program is warm they are gone: capture later, or look at later --steps",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
