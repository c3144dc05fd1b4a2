"""Steps as strips of time: how busy the GPU is in each short bin, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.report.devices import used_device
from pyprof.analysis.time.intervals import complement
from pyprof.analysis.time.steps import last_ends
from pyprof.answers.page.report_answer import MAX_DEVICES, StripRow, Strips
from pyprof.records.merging import at_most, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.summary.overview import Overview
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.answers.page.report_answer import UsedDevice
    from pyprof.answers.summary_answer import StepTimes
    from pyprof.arrays import Floats, Int64Array
    from pyprof.records.records import Records


_BINS = 600
_MAX_ROWS = 24
_MAX_STEPS = 12
_SLOWEST = 3
_SHADES = 10


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """The rows of a device that may be shown."""

    device: UsedDevice
    step_kind: str
    """Kind of `steps.Steps`; steps of different kinds do not match by number."""
    by_step: Mapping[int, StripRow]
    recordings: tuple[StripRow, ...]
    """Periods recorded without a pause, shown if there are no steps to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripSums:
    """What strips are chosen from, small enough to send. Each capture has its own clock."""

    devices: tuple[DeviceRows, ...] = merged_by(at_most(MAX_DEVICES))
    device_count: int
    """Number of devices, with those that are not shown."""
    steps: tuple[int, ...] = merged_by(merge_unique)
    """Steps in which a device worked, in any order."""

    def shown(self, capture_steps: StepTimes) -> Strips:
        """Choose the rows to show; `capture_steps` are the steps of all captures.

        A step that is chosen for being slow in one capture may be missing in another.
        """
        steps = sorted(step for step in self.steps if step < capture_steps.count)
        duration_ns = np.array(capture_steps.duration_ns, np.int64)
        chosen = _some(steps, duration_ns, _max_steps(len(self.devices)))
        rows = []
        for device in self.devices:
            alike = device.by_step if device.step_kind == capture_steps.kind else {}
            of_steps = tuple(alike[step] for step in chosen if step in alike)
            rows.append((device.device, of_steps or device.recordings))
        left_out = self.device_count - len(self.devices)
        return Strips(tuple(rows), len(steps) - len(chosen), left_out)


def strip_sums(records: Records, overview: Overview) -> StripSums | None:
    """Cut what may be shown of a capture into bins; None if the records hold no times."""
    if overview.timeline is None:
        return None
    devices = overview.timeline.devices[:MAX_DEVICES]
    worked, windows = _shown_steps(records, overview, len(devices))
    rows = (
        DeviceRows(
            used_device(device),
            overview.steps.kind,
            {step: _row(device, step, None, *window) for step, window in windows.items()},
            tuple(_row(device, None, *recording) for recording in _recordings(device)),
        )
        for device in devices
    )
    return StripSums(devices=tuple(rows), device_count=len(overview.timeline.devices), steps=worked)


def _max_steps(devices: int) -> int:
    """The number of steps shown per device."""
    return min(_MAX_STEPS, _MAX_ROWS // devices)


def _row(
    device: DeviceTime, step: int | None, recording: int | None, start: int, end: int
) -> StripRow:
    edges = np.linspace(start, end, _BINS + 1)
    # when it did anything, and when each kind of work, in the order of KINDS_OF_WORK
    worked = (device.busy, device.compute, device.communication, device.copy)
    in_bins, *parts = (np.diff(_elapsed(each.near(start, end), edges)) for each in worked)
    busy = in_bins / np.maximum(np.diff(edges), 1e-9)
    kind = np.argmax(parts, axis=0)
    left, right = edges[:-1] - start, edges[1:] - start
    is_busy = busy > 0
    bins = _without_seams(
        left[is_busy], right[is_busy], np.minimum(busy[is_busy], 1.0), kind[is_busy]
    )
    return StripRow(step, recording, end - start, bins)


def _recordings(device: DeviceTime) -> list[tuple[int | None, int, int]]:
    if device.windows == 1:
        return [(None, device.start_ns, device.end_ns)]
    recorded = complement(device.paused, device.start_ns, device.end_ns)
    return [*zip(range(_MAX_STEPS), recorded.start.tolist(), recorded.end.tolist(), strict=False)]


def _shown_steps(
    records: Records, overview: Overview, devices: int
) -> tuple[tuple[int, ...], dict[int, tuple[int, int]]]:
    """Return the steps with work, and the bounds of those that a page may show.

    It may show the first, the slowest, and others, evenly spaced.
    """
    steps = overview.steps
    worked, ended = steps_with_work(records, overview)
    all_steps = worked.tolist()
    begun = ended - steps.duration_ns  # so that the step includes the wait for its first kernel
    counts = {_max_steps(count) for count in range(devices, MAX_DEVICES + 1)}
    chosen = {step for most in counts for step in _some(all_steps, steps.duration_ns, most)}
    return tuple(all_steps), {step: (int(begun[step]), int(ended[step])) for step in sorted(chosen)}


def steps_with_work(records: Records, overview: Overview) -> tuple[Int64Array, Int64Array]:
    """Return the numbers of the chosen steps with work on a GPU, and when each of all ended, ns."""
    steps = overview.steps
    ended = last_ends(records, steps.of_row, len(steps))
    first, last = overview.chosen or (0, len(steps))
    worked = (ended[first:last] > 0) & (steps.duration_ns[first:last] > 0)
    return first + np.flatnonzero(worked), np.maximum.accumulate(ended)


def _some(steps: list[int], duration_ns: Int64Array, most: int) -> list[int]:
    if len(steps) <= most:
        return steps
    order = np.argsort(-duration_ns[steps], kind="stable")[: min(_SLOWEST, most - 1)]
    slowest = [steps[index] for index in order.tolist()]
    apart = np.linspace(0, len(steps) - 1, most - len(slowest)).astype(int)
    return sorted({*slowest, *(steps[index] for index in apart.tolist())})


def _without_seams(
    left: Floats, right: Floats, busy: Floats, kind: Int64Array
) -> tuple[Floats, Floats, Floats, Int64Array]:
    """Merge neighbours that look alike; their total busy time stays."""
    if not len(left):
        return left, right, busy, kind
    shade = np.round(busy * _SHADES)
    apart = (left[1:] != right[:-1]) | (np.diff(shade) != 0) | (np.diff(kind) != 0)
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    last = np.concatenate([first[1:], [len(left)]]) - 1
    length = right[last] - left[first]
    return (
        left[first],
        right[last],
        np.add.reduceat(busy * (right - left), first) / length,
        kind[first],
    )


def _elapsed(busy: Intervals, at: Floats) -> Floats:
    """The busy time before each instant."""
    if not len(busy):
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(busy.end - busy.start)])
    bounds = np.stack([busy.start, busy.end], axis=1).reshape(-1).astype(float)
    amounts = np.stack([before[:-1], before[1:]], axis=1).reshape(-1).astype(float)
    return np.asarray(np.interp(at, bounds, amounts))
