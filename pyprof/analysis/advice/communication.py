"""Advice on collectives that run while nothing is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.advice.registry import rule
from pyprof.analysis.advice.scope import GPU, TIMES
from pyprof.analysis.time.intervals import union_of
from pyprof.analysis.time.timeline import COMMUNICATION, activity_classes

if TYPE_CHECKING:
    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext


@rule(
    "something is computed meanwhile",
    about="communication",
    needs=(GPU, TIMES),
)
def communication(context: RuleContext) -> Advice | None:
    """Find communication during which nothing was computed; at best all of it could be hidden."""
    records = context.table.records
    rows = np.flatnonzero(context.chosen & (activity_classes(records) == COMMUNICATION))
    exposed = np.zeros(len(rows))
    start, end = records.numpy("start")[rows], records.numpy("end")[rows]
    pid, number = records.numpy("pid")[rows], records.numpy("device")[rows]
    most = None
    for device in context.devices:
        here = (pid == device.pid) & (number == device.device)
        alone = context.inside(device.communication - device.compute)
        exposed[here] = alone.length_within(start[here], end[here])
        most = max(most or 0, (alone & union_of(start[here], end[here])).total)
    some = exposed > 0
    return context.advice(
        "communication",
        "communication is not overlapped with computation",
        "start collectives earlier (DDP bucket_cap_mb, FSDP prefetch), on a stream of their own;"
        " if ranks differ, this time is spent waiting for the slowest",
        rows[some],
        most,
        weight=exposed[some],
        elsewhere="start collectives earlier, on a stream of their own; if ranks differ, this time"
        " is spent waiting for the slowest",
    )
