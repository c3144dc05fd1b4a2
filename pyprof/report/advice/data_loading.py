"""Waiting for the next batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.marker import plain_layer
from pyprof.parse.describe import unnumbered
from pyprof.report.advice.finding import Advice, Evidence
from pyprof.report.advice.registry import rule
from pyprof.report.api import ALLOC, LOAD, SYNC
from pyprof.report.intervals import union

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case

_TOLD = (SYNC, ALLOC, LOAD)
"""Causes that have a rule of their own."""


@rule(
    "the GPU had work meanwhile",
    "a file or an op is called so, not a range",
)
def data_loading(case: Case) -> Advice | None:
    """Find ranges that name data loading, and how long the GPUs idled inside them.

    Their line is that of what came next, after the longest wait.
    """
    if case.capture is None or not case.devices:
        return None
    idle = [
        (union(times for cause, times in device.idle.items() if cause not in _TOLD), device.gaps)
        for device in case.devices
    ]
    found, most = [], 0
    for name, held in case.loading.items():
        waits = [(waited & held, gaps) for waited, gaps in idle]
        waited, gaps = max(waits, key=lambda wait: wait[0].total)
        if waited.total:
            longest = int(np.argmax(waited.inside(gaps.start, gaps.end)))
            line = case.texts["line"][int(gaps.row[longest])].as_py()
            what = plain_layer(unnumbered(name))
            found.append(Evidence(what, line, case.loadings[name], waited.total))
            most = max(most, waited.total)
    if not found:
        return None
    return Advice(
        "data_loading",
        "the GPU waits for the next batch",
        "more DataLoader workers, persistent_workers=True, a larger prefetch_factor;"
        " decode and augment ahead of time or on the GPU",
        most,
        tuple(sorted(found, key=lambda entry: -entry.total_ns)),
        np.zeros(0, np.int64),
    )
