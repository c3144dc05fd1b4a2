"""Converts metrics of Nsight Compute to `schema.COUNTERS`.

Names of `--page raw` (`gpu__time_duration.sum`) are those of the hardware's counters; those of
`--page details` (`Duration`) are the sections' words for the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyprof.arrays import sum_if_known
from pyprof.gpu.tensorcore import SEVERAL_PIPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.readers.ncu.tables import Kernel, Numbers

    Read = Callable[[str], "float | None"]

_PLAIN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "clock_hz": (
            "sm__cycles_elapsed.avg.per_second",
            "smsp__cycles_elapsed.avg.per_second",
            "gpc__cycles_elapsed.avg.per_second",
            "SM Frequency",
        ),
        "occupancy_pct": (
            "sm__warps_active.avg.pct_of_peak_sustained_active",
            "Achieved Occupancy",
        ),
        "theoretical_pct": ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"),
        "waves": ("launch__waves_per_multiprocessor", "Waves Per SM"),
        "l1_hit_pct": ("l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate"),
        "l2_hit_pct": ("lts__t_sector_hit_rate.pct", "L2 Hit Rate"),
        "dram_pct": (
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "DRAM Throughput",
        ),
        "regs": ("launch__registers_per_thread", "Registers Per Thread"),
        "sm_count": ("launch__sm_count", "# SMs", "device__attribute_multiprocessor_count"),
    }
)
"""Counters that are one metric: the first of these names that the file has."""

_SECONDS = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max",
            "Duration")  # fmt: skip
_CYCLES = ("sm__cycles_elapsed.avg", "sm__cycles_elapsed.max", "Elapsed Cycles")
_TRAFFIC = "dram__bytes.sum"
_TRAFFIC_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_TRAFFIC_RATE = ("dram__bytes.sum.per_second", "Memory Throughput")
_SHARED = (
    ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"),
    ("Static Shared Memory Per Block", "Dynamic Shared Memory Per Block"),
)
_TENSOR = ("sm__inst_executed_pipe_tensor.sum", "smsp__inst_executed_pipe_tensor.sum")
_TENSOR_MEMORY = ("sm__inst_executed_pipe_tc.sum", "smsp__inst_executed_pipe_tc.sum")
"""Instructions of the Tensor Cores of a B200, which have a memory and a pipe of their own."""
_TENSOR_PARTS = tuple(
    re.compile(rf"sm(?:sp)?__inst_executed_pipe_tensor_{part}_[a-z0-9]+\.sum")
    for part in ("op", "subpipe")
)
"""The same instructions by operation and by subpipe: either way they add up to all."""
_TENSOR_PCT, _TENSOR_PART_PCT, _TENSOR_MEMORY_PCT = (
    re.compile(
        rf"sm(?:sp)?__(?:pipe_{pipe}_cycles_active(?:_v2)?|inst_executed_pipe_{pipe})"
        r"\.(?:avg|sum)\.pct_of_peak_sustained_(?:active|elapsed)"
    )
    for pipe in ("tensor", r"tensor(?:_(?:op|subpipe)_[a-z0-9]+)+", "tc")
)
"""Use of the Tensor Cores' pipe, of its parts, and of a B200's second pipe."""
_ARITHMETIC = re.compile(
    r"sm(?:sp)?__sass_thread_inst_executed_op_([fhd])(add|mul|fma)_pred_on\.sum"
)
_LAUNCH = re.compile(r"launch__(?:grid|block)_(?:dim_[xyz]|size)|(?:Grid|Block) Size")
_NAME = "device__attribute_display_name"

_NAMES = frozenset(
    (
        *(name for names in _PLAIN.values() for name in names),
        *_SECONDS, *_CYCLES, _TRAFFIC, *_TRAFFIC_PARTS, *_TRAFFIC_RATE, *_TENSOR,
        *_TENSOR_MEMORY, _NAME,
        *(name for pair in _SHARED for name in pair),
    )
)  # fmt: skip
_PATTERNS = (*_TENSOR_PARTS, _TENSOR_PCT, _TENSOR_PART_PCT, _TENSOR_MEMORY_PCT, _ARITHMETIC,
             _LAUNCH)  # fmt: skip
_COUNTER = re.compile(r"(?<![\w:])[a-z0-9]+__[\w.]+\w")
"""A counter's name, which may stand beside its title (`--print-metric-name label-name`).

After a colon it is another metric: `pmsampling:` is the same counter over time.
"""


@lru_cache(maxsize=1 << 16)
def known_name(title: str) -> str | None:
    """Return the name of a metric that PyProf uses; None for any other."""
    counter = _COUNTER.search(title)
    names = (title, counter[0]) if counter else (title,)
    known = (
        name
        for name in names
        if name in _NAMES or any(pattern.fullmatch(name) for pattern in _PATTERNS)
    )
    return next(known, None)


def measured(kernel: Kernel, numbers: Numbers, cc_major: int | None = None) -> dict[str, float]:
    """Return the counters of a kernel, without those not measured.

    `cc_major` is the major compute capability of the kernel's device, if known.
    """

    def read(name: str) -> float | None:
        return numbers.read(kernel.metrics.get(name))

    values = {key: _first_known(names, read) for key, names in _PLAIN.items()}
    clock_hz = values["clock_hz"]
    seconds, cycles = _first_known(_SECONDS, read), _first_known(_CYCLES, read)
    if seconds is None and cycles is not None and clock_hz:
        seconds = cycles / clock_hz
    duration_s = seconds if seconds is not None and 0 <= seconds < _LONGEST_S else None
    values["duration_ns"] = None if duration_s is None else duration_s * 1e9
    traffic, rate = read(_TRAFFIC), _first_known(_TRAFFIC_RATE, read)
    traffic = sum_if_known([*map(read, _TRAFFIC_PARTS)]) if traffic is None else traffic
    if traffic is None and rate is not None and duration_s is not None:
        traffic = rate * duration_s
    values["dram_bytes"] = traffic
    values["smem_bytes"] = next(
        (size for pair in _SHARED if (size := sum_if_known([*map(read, pair)])) is not None), None
    )
    pipes = [_first_known(_TENSOR, read), _first_known(_TENSOR_MEMORY, read)]
    parts = (sum(_values(kernel, pattern, read)) for pattern in _TENSOR_PARTS)
    counted = sum(count for count in pipes if count is not None) or max(parts)
    values["tensor_insts"] = counted or (0.0 if _is_complete(pipes, cc_major) else None)
    values["tensor_pct"] = _tensor_share(kernel, read, cc_major)
    values |= _arithmetic(kernel, read)
    return {key: value for key, value in values.items() if value is not None and value >= 0}


def _first_known(names: tuple[str, ...], read: Read) -> float | None:
    return next((value for name in names if (value := read(name)) is not None), None)


_LONGEST_S = 86400.0
"""A day; longer times are damage."""


def _tensor_share(kernel: Kernel, read: Read, cc_major: int | None) -> float | None:
    """Return the utilisation of the most active Tensor Core pipe."""
    pipes = [
        max(_values(kernel, pattern, read), default=None)
        for pattern in (_TENSOR_PCT, _TENSOR_MEMORY_PCT)
    ]
    parts = _values(kernel, _TENSOR_PART_PCT, read)
    most = max((share for share in pipes if share is not None), default=0.0)
    return most or max(parts, default=0.0) or (0.0 if _is_complete(pipes, cc_major) else None)


def _is_complete(pipes: Sequence[float | None], cc_major: int | None) -> bool:
    """Whether the metrics cover every Tensor Core pipe of the GPU."""
    tensor, memory = (count is not None for count in pipes)
    return tensor and (memory or cc_major not in SEVERAL_PIPES)


def _values(kernel: Kernel, pattern: re.Pattern[str], read: Read) -> list[float]:
    values = (read(name) for name in kernel.metrics if pattern.fullmatch(name))
    return [value for value in values if value is not None]


def _arithmetic(kernel: Kernel, read: Read) -> dict[str, float | None]:
    """Return the FLOPs outside of Tensor Cores, an FMA as 2, and the FMAs of half pairs.

    A type with a missing count is left out; without float32's there is no sum.
    """
    counts: dict[str, dict[str, float]] = {}
    for name in kernel.metrics:
        match = _ARITHMETIC.fullmatch(name)
        if match and (value := read(name)) is not None:
            counts.setdefault(match[1], {})[match[2]] = value
    complete = {letter: c for letter, c in counts.items() if len(c) == len(("add", "mul", "fma"))}
    flops = [c["add"] + c["mul"] + 2 * c["fma"] for c in complete.values()]
    return {
        "flops": sum(flops) if "f" in complete else None,
        "half_fmas": counts.get("h", {}).get("fma"),
    }
