"""Converts sampled device metrics of nsys and Kineto to the schema's."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.arrays import texts_by_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pyprof.arrays import Floats, Int64Array


class Meaning(NamedTuple):
    """The metric of the schema that a tool's metric is, and the factor to its unit."""

    metric: str
    factor: float = 1.0


_MEGA = 1e6
_NAMES = tuple(
    (re.compile(pattern, re.IGNORECASE), Meaning(*meaning))
    for pattern, *meaning in (
        # nsys --gpu-metrics-devices
        (r"DRAM Read (?:Bandwidth|Throughput)(?: \[Throughput %\])?", "dram_read_pct"),
        (r"DRAM Write (?:Bandwidth|Throughput)(?: \[Throughput %\])?", "dram_write_pct"),
        (r"Tensor Active(?: \[Throughput %\])?", "tensor_pct"),
        (r"SMs Active(?: \[Throughput %\])?", "sm_active_pct"),
        (r"(?:GPC|SM) Clock(?: Frequency)?(?: [\[(]MHz[\])])?", "clock_hz", _MEGA),
        # CUPTI's sampling of the PM counters, by Kineto
        (r"dram__(?:throughput|bytes)\.\w+\.pct_of_peak_sustained_\w+", "dram_pct"),
        (r"dram__(?:read_throughput|bytes_read)\.\w+\.pct_of_peak_sustained_\w+", "dram_read_pct"),
        (r"dram__(?:write_throughput|bytes_write)\.\w+\.pct_of_peak_sustained_\w+",
         "dram_write_pct"),
        (r"sm__(?:pipe_tensor_cycles_active|inst_executed(?:_realtime)?_pipe_tensor)\.\w+\.pct_\w+",
         "tensor_pct"),
        (r"sm__cycles_elapsed\.avg\.per_second", "clock_hz"),
        # torch's device monitor
        (r"(?:HBM|DRAM) BW \(%\)", "dram_pct"),
        (r"Tensor(?: Core)?s? Active \(%\)", "tensor_pct"),
        (r"SM Active \(%\)", "sm_active_pct"),
        (r"Power \(W\)", "power_w"),
        (r"Power \(mW\)", "power_w", 1e-3),
        (r"Temperature \(C\)", "temperature_c"),
        # NVML, by `pyprof capture`: one bit per reason for a clock below the highest
        (r"Clock Event Reasons", "clock_reasons"),
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def meaning(name: str) -> Meaning | None:
    """Return the meaning of a metric; None if PyProf does not use it."""
    return next((m for pattern, m in _NAMES if pattern.fullmatch(name.strip())), None)


_MAX: dict[str, float] = {"clock_hz": 1e11, "power_w": 1e5, "temperature_c": 1e3,
                           "clock_reasons": 1 << 31}  # fmt: skip
_MAX_PCT = 1000.0
"""Higher values are left out; metrics without a limit of their own are shares."""
_IN_HZ = 1e12
"""Clocks that would be this high in MHz are in Hz."""


def samples(
    device: Int64Array,
    time: Int64Array,
    meanings: Sequence[Meaning],
    which: Int64Array,
    value: Floats,
) -> pa.Table:
    """Build the table of samples; `which` is the index of each row's meaning.

    Impossible values are left out; if several samples have the same time, the last counts.
    """
    metrics = [m.metric for m in meanings]
    with np.errstate(over="ignore"):  # infinite values are left out below
        value = value * np.array([m.factor for m in meanings], np.float64)[which]
    clock = np.array([metric == "clock_hz" for metric in metrics], bool)[which]
    value = np.where(clock & (value >= _IN_HZ), value / _MEGA, value)
    most = np.array([_MAX.get(metric, _MAX_PCT) for metric in metrics], np.float64)[which]
    rows = np.flatnonzero((value >= 0) & (value <= most))
    rows = rows[np.lexsort((time[rows], which[rows], device[rows]))]
    same = np.all([key[rows][1:] == key[rows][:-1] for key in (device, which, time)], axis=0)
    rows = rows[~np.append(same, [False])] if len(rows) else rows
    columns = {"device": device[rows].astype(np.int32), "time": time[rows],
               "metric": texts_by_index(which[rows], metrics), "value": value[rows]}  # fmt: skip
    return schema.table(schema.SAMPLES, columns)
