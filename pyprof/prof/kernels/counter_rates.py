"""What follows from counters together with the model: traffic, energy, efficiency at the clock."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.peaks import MEGA, find_card
from pyprof.gpu.tensorcore import SEVERAL_PIPES, USED
from pyprof.prof.kernels.counters import ARGS, NCU, SAMPLES
from pyprof.prof.shared_time import shared_ns

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Mask
    from pyprof.gpu.peaks import Device
    from pyprof.prof.table import Judgement, Table

NS_PER_S = 1e9


def seconds(table: Table) -> Floats:
    """Give the time of each row; NaN for none."""
    return np.where(table.timed & (table.duration_ns > 0), table.duration_ns / NS_PER_S, math.nan)


def in_this_run(table: Table, name: str) -> Mask:
    """Tell of which rows a counter is of the run whose times are reported, not of one of ncu's."""
    measured = table.measured
    return measured.from_sources(NCU, SAMPLES, ARGS) | np.isfinite(measured.values(f"{name}_err"))


def dram_bytes(table: Table) -> Floats:
    """Give the measured DRAM traffic; where it is recorded as a share of the peak, by that."""
    measured = table.measured
    counted = measured.values("dram_bytes")
    share = np.where(in_this_run(table, "dram_pct"), measured.values("dram_pct"), math.nan)
    if not np.isfinite(share).any():
        return counted
    number, judged = table.judged
    peak = np.array([_rate(entry) for entry in judged], np.float64)[number]
    return np.where(np.isfinite(counted), counted, share / 100 * peak * seconds(table))


def _rate(entry: Judgement) -> float:
    return entry.bandwidth_peak.value if entry.bandwidth_peak else math.nan


def excess(table: Table) -> Floats:
    """Give measured traffic over least bytes; NaN where no bytes are needed, or these unknown."""
    least = np.where(table.costs.bytes > 0, table.costs.bytes.astype(np.float64), math.nan)
    return dram_bytes(table) / least


def energy_j(table: Table) -> Floats:
    """Give power times time; rows that run at once share their device's."""
    power = table.measured.values("power_w")
    if not np.isfinite(power).any():
        return power
    return np.where(np.isfinite(seconds(table)), power * shared_ns(table) / NS_PER_S, math.nan)


def peak_clock_hz(table: Table) -> Floats:
    """Give the clock at which each row's peak FLOP/s holds; NaN where it is of no clock."""
    given = table.override
    if given.peak_flops is not None or given.measured:
        return np.full(table.records.rows, math.nan)
    if given.clock_mhz is not None:
        return np.full(table.records.rows, given.clock_mhz * MEGA)
    number, judged = table.judged
    gpu = table.records.dictionary("gpu")
    clocks = [_clocks(table.device_of(given.gpu or name)) for name in (*gpu.values, None)]
    on_tensor_cores = np.array([entry.tc.value == USED for entry in judged], np.int64)[number]
    return np.array(clocks, np.float64)[gpu.index, on_tensor_cores]


def _clocks(device: Device) -> tuple[float, float]:
    """Give the clocks of the peaks of CUDA cores and of Tensor Cores, Hz."""
    card = find_card(device.name) if device.name else None
    if card is None or card.clock_mhz is None:
        clock = device.clock_hz or math.nan
        return clock, clock
    return card.clock_mhz * MEGA, (card.tensor_clock_mhz or card.clock_mhz) * MEGA


def share_at_clock(table: Table) -> Floats:
    """Give the share of the roofline whose peak FLOP/s is that of the clock that ran."""
    clock = table.measured.values("clock_hz")
    clock = np.where(in_this_run(table, "clock_hz") & (clock > 0), clock, math.nan)
    rates = table.roofline
    slower = peak_clock_hz(table) / clock
    return np.where(rates.compute, rates.share * slower, np.where(np.isfinite(clock), rates.share,
                                                                  math.nan))  # fmt: skip


def tensor_cores(table: Table) -> Floats:
    """Tell where they ran, as `Measured` has it; of a B200 a trace counts one of two pipes."""
    ran = table.measured.tensor_cores
    silent = table.measured.from_sources(ARGS) & (ran == 0)
    if not silent.any():
        return ran
    gpu = table.records.dictionary("gpu")
    major = [(table.device_of(name).cuda_cc or (0, 0))[0] for name in (*gpu.values, None)]
    has_other = np.array([number in SEVERAL_PIPES for number in major], bool).take(gpu.index)
    return np.where(silent & has_other, math.nan, ran)


def tensor_core_disagreements(table: Table) -> Mask:
    """Tell which rows' counters contradict what their names say of Tensor Cores."""
    number, judged = table.judged
    says = np.array([_SAID.get(entry.tc.value, math.nan) for entry in judged], np.float64)[number]
    ran = tensor_cores(table)
    return np.asarray(np.isfinite(says) & np.isfinite(ran) & (says != ran))


_SAID = {USED: 1.0, "0": 0.0, "-": 0.0}
