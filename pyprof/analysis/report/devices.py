"""Devices as processes used them, and how long each took for its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.time.steps import bounds_on_gpu, on_gpu
from pyprof.answers.page.report_answer import MAX_RANKS, DeviceSteps, UsedDevice
from pyprof.prof.processor import word
from pyprof.records.records import Records

if TYPE_CHECKING:
    from pyprof.analysis.summary.overview import Overview
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.arrays import Floats, Int64Array

_NEEDED = ("kind", "pid", "device", "window", "start", "end")


def used_device(device: DeviceTime) -> UsedDevice:
    """Return what identifies a device."""
    number = device.device if device.device >= 0 else None
    return UsedDevice(word(device.gpu), number, device.rank, device.pid)


def device_steps(records: Records, overview: Overview) -> DeviceSteps:
    """Measure every step on every GPU; without steps, the result has no GPUs."""
    if not len(overview.steps) or overview.timeline is None:
        return DeviceSteps(overview.steps.kind, (), (), ())
    pid, device = records.numpy("pid"), records.numpy("device")
    devices = overview.timeline.devices
    times = [
        _times(records, overview, each, np.flatnonzero((pid == each.pid) & (device == each.device)))
        for each in devices[:MAX_RANKS]
    ]
    return DeviceSteps(
        overview.steps.kind,
        devices=tuple(map(used_device, devices[:MAX_RANKS])),
        duration_ns=tuple(duration for duration, _ in times),
        computing_ns=tuple(computing for _, computing in times),
        left_out=len(devices[MAX_RANKS:]),
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
    duration, _ = on_gpu(own, of_row, steps.start_ns, steps.end_ns)
    computing = device.compute.length_within(bounds[:-1], bounds[1:])
    return np.where(shown, duration, np.nan), np.where(shown, computing, np.nan)
