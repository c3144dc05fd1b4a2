"""The host at something other than launching, for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.gaps import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.idle import HOST

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "the host was loading data, which data_loading tells",
    "the host was launching",
)
def host_work(case: Case) -> Advice | None:
    """Find gaps in which the host neither launched nor waited; the evidence is what came next."""
    _, rows, idle_ns = idle_for(case, HOST)
    return case.advice(
        "host_work",
        "the GPU waits while the host does something other than launching",
        "see with a CPU profiler (py-spy, pyinstrument) what Python does before the work below",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )
