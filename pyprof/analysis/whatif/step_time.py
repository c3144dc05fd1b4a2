"""The time of a step after a change: by subtracting savings, and by replaying the launches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.time import host_api
from pyprof.analysis.time.intervals import union_of
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.whatif import replay
from pyprof.answers.whatif_answer import PredictedTime
from pyprof.parse.launches import launch_bounds
from pyprof.quantities import change as relative_change
from pyprof.quantities import duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.whatif.kernels import Kernels
    from pyprof.analysis.whatif.replay import Recording
    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source

_REPRODUCED = 0.03
"""How far a replay of the unchanged capture may be off its span."""
_HOST_BOUND = 0.15
"""If the two estimates differ by more, neither held on real pairs: the host changes, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """A mean step, or the whole capture where no steps are known, that can be replayed."""

    recorded: Recording
    now_ns: float
    steps: int | None
    """Number of steps; None for the whole capture."""
    rows: Mask
    """Mask of the rows of these steps, in the order of launches."""
    critical: Mask
    """Mask of the rows on the busiest device."""
    running: float
    """The time in which any of these ran, over their summed time: 1 if none overlap."""
    replayed_ns: float
    """Span of the rows as replayed without a change."""

    def after(self, kernels: Kernels) -> PredictedTime | str:
        """Return the time after a change; where the host bounds it, both limits as a text."""
        times = kernels.low, kernels.ns, kernels.high
        rows, steps = self.recorded.row[self.critical], self.steps or 1
        subtracted = []
        for ns in times:
            saved = self.running * float((kernels.context.ns[rows] - ns[rows]).sum())
            least = self.running * float(ns[rows].sum()) / steps
            subtracted.append(max(self.now_ns - saved / steps, least))
        replays = [
            self.now_ns * _span(self.recorded, ns, self.rows) / self.replayed_ns for ns in times
        ]
        if abs(replays[1] - subtracted[1]) > _HOST_BOUND * replays[1]:
            return (
                f"host-bound: {duration(subtracted[1])} if the GPU idles as long as now,"
                f" {duration(replays[1])} if the host launches as now"
            )
        return PredictedTime(
            now=round(self.now_ns),
            low=round(min(subtracted[0], replays[0])),
            expected=round(replays[1]),
            high=round(max(subtracted[2], replays[2])),
        )


def _span(recorded: Recording, ns: NDArray[np.float64], rows: Mask) -> float:
    start, end = replay.replayed(recorded, ns[recorded.row])
    return float(end[rows].max() - start[rows].min())


def step_time(source: Source) -> StepTime | str:
    """Return the steps' time now, and what replays it; or why no step time is predicted."""
    records, capture = source.table.records, source.capture
    pids = np.unique(records.numpy("pid"))
    if capture is None or not capture.calls.num_rows:
        return "the file holds no API calls, so the host cannot be replayed"
    if len(pids) != 1:
        return "several processes wait for one another"
    calls = host_api.calls(records, capture)
    recorded = replay.recording(records, launch_bounds(records), calls, int(pids[0]))
    if recorded is None:
        return "the launches of some kernels are unknown"
    steps = find_steps(records, capture)
    chosen = steps.averaged
    inside = steps.rows(chosen)
    rows = np.ones(len(recorded.row), bool) if inside is None else inside[recorded.row]
    start, end = recorded.start_ns[rows], recorded.end_ns[rows]
    if not (end > start).any():
        return "no kernel that takes time is in a step"
    span_ns = float(end.max() - start.min())
    replayed_ns = _span(recorded, source.table.duration_ns.astype(float), rows)
    if abs(replayed_ns / span_ns - 1) > _REPRODUCED:
        off = relative_change(replayed_ns / span_ns - 1)
        return f"a replay of the unchanged capture is {off} off its span"
    device = records.numpy("device")[recorded.row]
    busy = np.bincount(np.maximum(device[rows], 0), (recorded.end_ns - recorded.start_ns)[rows])
    critical = rows & (device == busy.argmax())
    ran = union_of(recorded.start_ns[critical], recorded.end_ns[critical])
    return StepTime(
        recorded=recorded,
        now_ns=span_ns if chosen is None else steps.mean_ns(chosen),
        steps=None if chosen is None else chosen[1] - chosen[0],
        rows=rows,
        critical=critical,
        running=ran.total / max(float(busy.max()), 1.0),
        replayed_ns=replayed_ns,
    )
