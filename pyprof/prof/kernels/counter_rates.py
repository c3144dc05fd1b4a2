"""What follows from counters together with the model: traffic, energy, efficiency at the clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.peaks import MEGA, find_card
from pyprof.gpu.roofline import NS_PER_S
from pyprof.gpu.tensorcore import NOT_APPLICABLE, NOT_USED, SEVERAL_PIPES, USED
from pyprof.parse.ranges.nesting import by_value
from pyprof.prof.kernels.counters import ARGS, NCU, ROCPROF, SAMPLES

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.gpu.peaks import Device
    from pyprof.prof.table import Table


def seconds(table: Table) -> Floats:
    """Duration of each row in seconds; NaN if unknown."""
    return np.where(table.timed & (table.duration_ns > 0), table.duration_ns / NS_PER_S, math.nan)


def in_this_run(table: Table, name: str) -> Mask:
    """Mask of the rows whose counter was measured in the timed run, not in one of ncu's."""
    measured = table.measured
    return measured.source.is_in(NCU, SAMPLES, ARGS, ROCPROF) | np.isfinite(
        measured.values(f"{name}_err")
    )


def dram_bytes(table: Table) -> Floats:
    """Measured DRAM traffic in bytes; computed from the share of peak if that was recorded."""
    measured = table.measured
    counted = measured.values("dram_bytes")
    share = np.where(in_this_run(table, "dram_pct"), measured.values("dram_pct"), math.nan)
    if not np.isfinite(share).any():
        return counted
    peak = table.classified.numpy(
        lambda entry: entry.bandwidth_peak.value if entry.bandwidth_peak else math.nan, math.nan
    )
    return np.where(np.isfinite(counted), counted, share / 100 * peak * seconds(table))


def excess(table: Table) -> Floats:
    """Measured traffic over least bytes; NaN if the latter are 0 or unknown."""
    least = np.where(table.costs.bytes > 0, table.costs.bytes.astype(np.float64), math.nan)
    return dram_bytes(table) / least


def energy_j(table: Table) -> Floats:
    """Power times time, joules; rows that run at the same time share their device's."""
    power = table.measured.values("power_w")
    if not np.isfinite(power).any():
        return power
    return np.where(np.isfinite(seconds(table)), power * shared_ns(table) / NS_PER_S, math.nan)


def peak_clock_hz(table: Table) -> Floats:
    """The clock at which each row's peak FLOP/s holds, Hz; NaN if the peak has no known clock."""
    given = table.override
    if given.peak_flops is not None or given.measured:
        return np.full(table.records.rows, math.nan)
    if given.clock_mhz is not None:
        return np.full(table.records.rows, given.clock_mhz * MEGA)
    gpu = table.records.dictionary("gpu")
    clocks = [_clocks(table.device_of(given.gpu or name)) for name in (*gpu.values, None)]
    on_tensor_cores = table.classified.matches(lambda entry: entry.tc.value == USED)
    return np.array(clocks, np.float64)[gpu.index, on_tensor_cores.astype(np.int64)]


def _clocks(device: Device) -> tuple[float, float]:
    """Clocks of the peaks of CUDA cores and of Tensor Cores, Hz."""
    card = find_card(device.name) if device.name else None
    if card is None or card.clock_mhz is None:
        clock = device.clock_hz or math.nan
        return clock, clock
    return card.clock_mhz * MEGA, (card.tensor_clock_mhz or card.clock_mhz) * MEGA


def share_at_clock(table: Table) -> Floats:
    """Share of the roofline with the peak FLOP/s of the measured clock."""
    clock = table.measured.values("clock_hz")
    clock = np.where(in_this_run(table, "clock_hz") & (clock > 0), clock, math.nan)
    rates = table.roofline
    slower = peak_clock_hz(table) / clock
    return np.where(rates.compute, rates.share * slower, np.where(np.isfinite(clock), rates.share,
                                                                  math.nan))  # fmt: skip


def tensor_cores(table: Table) -> Floats:
    """As `Measured.tensor_cores`, but NaN where a trace counts only one of two pipes (B200)."""
    ran = table.measured.tensor_cores
    silent = table.measured.source.is_in(ARGS) & (ran == 0)
    if not silent.any():
        return ran
    gpu = table.records.dictionary("gpu")
    major = [(table.device_of(name).cuda_cc or (0, 0))[0] for name in (*gpu.values, None)]
    has_other = np.array([number in SEVERAL_PIPES for number in major], bool).take(gpu.index)
    return np.where(silent & has_other, math.nan, ran)


def tensor_core_disagreements(table: Table) -> Mask:
    """Mask of the rows whose counters contradict the Tensor Core use that their name implies."""
    says = table.classified.numpy(lambda entry: _RAN.get(entry.tc.value, math.nan), math.nan)
    ran = tensor_cores(table)
    return np.asarray(np.isfinite(says) & np.isfinite(ran) & (says != ran))


_RAN = {USED: 1.0, NOT_USED: 0.0, NOT_APPLICABLE: 0.0}
"""Whether Tensor Cores ran, by what a kernel's name implies."""


def shared_ns(table: Table) -> Floats:
    """Each row's part of its device's time, ns; its whole duration if no starts are known."""
    time = table.duration_ns.astype(np.float64)
    if "start" not in table.records.columns:
        return time
    start, end, device = (table.records.numpy(name) for name in ("start", "end", "device"))
    timed = np.flatnonzero(table.timed & (start >= 0) & (end > start))
    for _, indices in by_value(device[timed]):
        rows = timed[indices]
        time[rows] = split_evenly(start[rows], end[rows])
    return time


def split_evenly(start: Int64Array, end: Int64Array) -> Floats:
    """Divide each instant evenly among the intervals that hold it."""
    times = np.concatenate([start, end])
    order = np.argsort(times, kind="stable")
    running = np.cumsum(np.where(order < len(start), 1, -1))[:-1]
    parts = np.where(running > 0, np.diff(times[order]) / np.maximum(running, 1), 0.0)
    passed = np.empty(len(times))
    passed[order] = np.append([0.0], np.cumsum(parts))
    return passed[len(start) :] - passed[: len(start)]
