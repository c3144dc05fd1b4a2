"""How long steps took: one after the other, by rank, and what the GPU did in some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyprof.analysis.time.steps import bounds_on_gpu, on_gpu
from pyprof.quantities import duration
from pyprof.records.records import Records
from pyprof.render.page import figures
from pyprof.render.page.strips import Strips, strips
from pyprof.render.page.tables import device_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.summary.overview import Overview
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.arrays import Floats, Int64Array
    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Steps", 50
_MAX_RANKS = 64
_NEEDED = ("kind", "pid", "device", "window", "start", "end")


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of steps by GPU, each from the end of the previous step on the GPU to its own."""

    kind: str
    """Kind of `steps.Steps`; steps of different kinds do not match by number."""
    names: tuple[str, ...]
    """Names of the GPUs."""
    duration_ns: tuple[Floats, ...]
    """One array for each GPU; NaN for a step in which it did nothing."""
    computing_ns: tuple[Floats, ...]
    """The same for compute time: ranks that wait for each other take equally long."""
    left_out: int = 0

    def merged(self, other: StepTimes) -> StepTimes:
        """Put the GPUs of another capture below these."""
        if other.kind != self.kind:
            kept, rest = (self, other) if self.names else (other, self)
            return replace(kept, left_out=kept.left_out + len(rest.names) + rest.left_out)
        names = (*self.names, *other.names)
        left_out = self.left_out + other.left_out + len(names[_MAX_RANKS:])
        durations = (*self.duration_ns, *other.duration_ns)
        computing = (*self.computing_ns, *other.computing_ns)
        return StepTimes(
            self.kind,
            names[:_MAX_RANKS],
            durations[:_MAX_RANKS],
            computing[:_MAX_RANKS],
            left_out,
        )

    @property
    def steps(self) -> int:
        """The number of steps."""
        return max((len(duration) for duration in self.duration_ns), default=0)


class StepData(NamedTuple):
    """What the figures are drawn from."""

    times: StepTimes
    strips: Strips | None
    """None if the records hold no times."""


def summarise(gathered: PartInput) -> StepData:
    """Measure the steps of a capture."""
    return StepData(step_times(gathered), strips(gathered.source, gathered.overview))


def section(page: Page) -> Mapping[str, Any] | None:
    """Return the figures of steps, and of ranks; None without several steps."""
    steps, data = page.answer.steps, page.data
    shown = data.strips.strip(steps) if data.strips else None
    first, last = steps.shown.start, steps.shown.stop
    count = last - first
    if shown is None or steps.averaged_count is None or count <= 1:  # the timeline shows as much
        return None
    several = len(data.times.names) > 1
    trend = figures.trend(steps)
    shares = figures.shares_of_peak(trend)
    return {
        "count": count,
        "origin": steps.described_origin,
        "warm_up": 0 if steps.are_chosen else steps.warm_up_count,
        "median": duration(steps.median_ns),
        "trend": trend,
        "shares": shares,
        "share_colours": shares["colours"] if shares else {},
        "peak": page.answer.utilization.peak_flops_label,
        "heat": figures.heat_map(data.times, first, last) if several else None,
        "ranks_left_out": data.times.left_out,
        "strip": figures.strip(shown),
        "strip_left_out": shown.steps_left_out,
        "devices_left_out": data.strips.devices_left_out,
        "colours": figures.SORTS,
    }


def step_times(gathered: PartInput) -> StepTimes:
    """Measure every step on every GPU; without steps, the result has no GPUs."""
    overview, records = gathered.overview, gathered.source.table.records
    nothing = StepTimes(overview.steps.kind, (), (), ())
    if not len(overview.steps) or overview.timeline is None:
        return nothing
    pid, device = records.numpy("pid"), records.numpy("device")
    devices = overview.timeline.devices
    times = [
        _times(records, overview, each, np.flatnonzero((pid == each.pid) & (device == each.device)))
        for each in devices[:_MAX_RANKS]
    ]
    return replace(
        nothing,
        names=tuple(device_name(each) for each in devices[:_MAX_RANKS]),
        duration_ns=tuple(duration for duration, _ in times),
        computing_ns=tuple(computing for _, computing in times),
        left_out=len(devices[_MAX_RANKS:]),
    )


def _times(
    records: Records, overview: Overview, device: DeviceTime, rows: Int64Array
) -> tuple[Floats, Floats]:
    """Measure a GPU's steps; NaN for those in which it did nothing, or that were not chosen."""
    steps, own, of_row = overview.steps, records, overview.steps.of_row
    if len(rows) < records.rows:
        columns = {name: records.columns[name] for name in _NEEDED if name in records.columns}
        own, of_row = Records(records.rows, columns).take(rows), of_row[rows]
    first, last = overview.chosen or (0, len(steps))
    shown = np.zeros(len(steps), bool)
    shown[of_row[(of_row >= first) & (of_row < last)]] = True
    bounds = bounds_on_gpu(own, of_row, len(steps))
    if bounds is None:
        return np.full(len(steps), np.nan), np.full(len(steps), np.nan)
    duration = on_gpu(own, of_row, steps.start_ns, steps.end_ns)
    computing = device.compute.length_within(bounds[:-1], bounds[1:])
    return np.where(shown, duration, np.nan), np.where(shown, computing, np.nan)
