"""What kernels achieved, and how far that is from what their device could do.

Pure functions of arrays, one value a kernel; NaN means not known and makes the answer NaN. FLOPs
and bytes are those of the algorithm, so that a kernel which reads twice what it must shows as slow.
Source of the model: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Floats


NS_PER_S = 1e9


def per_second(amount: float | None, time_ns: float | None) -> float | None:
    """Return a rate; None if the amount is unknown or there is no time."""
    return None if amount is None or not time_ns else amount / time_ns * NS_PER_S


LAUNCH_NS = 5_000
"""Approximate time to start and drain a kernel: a shorter one measures that, not the device."""
SHORTEST_NS = 2_500
"""Time of the shortest kernel, however little it does."""

NEAR_ROOF = 0.5
"""From this share of the roofline on, the roof explains the time, however short it is."""

LIMITS = ("latency", "compute", "memory")
"""What limits a kernel. `latency`: far from both roofs, and either short enough for the launch to
dominate or with fewer thread blocks than the device has SMs."""


class Rates(NamedTuple):
    """What kernels achieved, in FLOP/s, bytes/s, FLOP/byte; NaN where not known."""

    flops_per_s: Floats
    bytes_per_s: Floats
    intensity: Floats


def rates(flops: Floats, moved_bytes: Floats, duration_ns: Floats) -> Rates:
    """Divide FLOPs and bytes by the time, and FLOPs by bytes."""
    seconds = _seconds(duration_ns)
    with np.errstate(divide="ignore", invalid="ignore"):
        intensity = np.where(moved_bytes > 0, flops / moved_bytes, np.nan)
    return Rates(flops / seconds, moved_bytes / seconds, intensity)


def _seconds(duration_ns: Floats) -> Floats:
    return np.where(duration_ns > 0, duration_ns / NS_PER_S, np.nan)


class Roofline(NamedTuple):
    """How close kernels are to the roof; NaN where not known."""

    share: Floats
    """Share of the roof; more than 1 if the cost or the peak is not what it seems."""
    compute: NDArray[np.bool_]
    """Kernels that are nearer to their peak FLOP/s than to the bandwidth."""
    limit: NDArray[np.int8]
    """Which of the LIMITS; -1 where costs or peaks are not known."""


def roofline(
    flops: Floats,
    moved_bytes: Floats,
    duration_ns: Floats,
    peak_flops: Floats,
    peak_bandwidth: Floats,
    *,
    open_unit: NDArray[np.bool_],
    idle: NDArray[np.bool_],
) -> Roofline:
    """Compare FLOPs and bytes over time with the peaks; no FLOPs (or bytes) need no peak.

    `open_unit` are kernels that may or may not have used Tensor Cores: `peak_flops` is then
    the peak of the slower unit. `idle` are those with fewer thread blocks than the device has SMs.
    """
    seconds = _seconds(duration_ns)
    with np.errstate(divide="ignore", invalid="ignore"):
        arithmetic = np.where(flops == 0, 0.0, flops / peak_flops)
        memory = np.where(moved_bytes == 0, 0.0, moved_bytes / peak_bandwidth)
        # If memory takes longer, the unit does not matter; else the share is not known.
        arithmetic[open_unit & (arithmetic > memory)] = np.nan
        need = np.maximum(arithmetic, memory)
    far = (need < NEAR_ROOF * seconds) & ((seconds * NS_PER_S < LAUNCH_NS) | idle)
    compute = arithmetic >= memory
    choices = [np.isnan(need) | np.isnan(seconds), far, need == 0, compute]
    return Roofline(
        np.where(need == 0, np.nan, need / seconds),
        compute,
        np.select(choices, [*np.array([-1, 0, -1, 1], np.int8)], np.int8(2)),
    )
