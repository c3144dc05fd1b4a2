"""What a kernel achieved, and how far that is from what its device could do.

Pure functions of numbers; None means not known and makes the answer None. FLOPs and bytes are
those of the algorithm, so that a kernel which reads twice what it must shows as slow.
Source of the model: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

from typing import NamedTuple

NS_PER_S = 1e9

LAUNCH_NS = 5_000
"""About what starting and draining a kernel costs: shorter ones measure that, not the device."""

NEAR_ROOF = 0.5
"""From this share of the roofline on, the roof explains the time, however short it is."""


class Achieved(NamedTuple):
    """Rates of one kernel."""

    flops_per_s: float | None
    bytes_per_s: float | None
    intensity: float | None
    """FLOP a byte; None where no byte moves."""


class Efficiency(NamedTuple):
    """Share of the roofline."""

    value: float
    """1.0 is the roof; not clipped."""
    above_peak: bool
    """The cost, the peak or the clock behind it is not what it seems: caches, emulation, ..."""


def achieved(flops: float | None, moved_bytes: float | None, duration_ns: float | None) -> Achieved:
    """Divide a kernel's cost by its time; what is not known stays None."""
    known_time = duration_ns is not None and duration_ns > 0
    seconds = duration_ns / NS_PER_S if known_time and duration_ns is not None else None
    return Achieved(
        flops / seconds if flops is not None and seconds else None,
        moved_bytes / seconds if moved_bytes is not None and seconds else None,
        flops / moved_bytes if flops is not None and moved_bytes else None,
    )


def least_ns(
    flops: float | None,
    moved_bytes: float | None,
    peak_flops: float | None,
    peak_bandwidth: float | None,
) -> tuple[float, float] | None:
    """Return the least time in ns that the arithmetic, and that the memory traffic, needs.

    No FLOPs (or bytes) need no peak; otherwise None where a cost or its peak is not known.
    """
    arithmetic = _least(flops, peak_flops)
    memory = _least(moved_bytes, peak_bandwidth)
    return None if arithmetic is None or memory is None else (arithmetic, memory)


def _least(work: float | None, peak: float | None) -> float | None:
    if work is None or work < 0:
        return None
    if work == 0:
        return 0.0
    return work / peak * NS_PER_S if peak is not None and peak > 0 else None


def efficiency(
    flops: float | None,
    moved_bytes: float | None,
    duration_ns: float | None,
    peak_flops: float | None,
    peak_bandwidth: float | None,
) -> Efficiency | None:
    """Return the share of the roofline: the larger of FLOP/s over peak and bytes/s over bandwidth.

    None where the time, a cost or a needed peak is not known, and for a kernel with neither.
    """
    least = least_ns(flops, moved_bytes, peak_flops, peak_bandwidth)
    if least is None or duration_ns is None or duration_ns <= 0 or max(least) == 0:
        return None
    share = max(least) / duration_ns
    return Efficiency(share, share > 1)


def bound(
    flops: float | None,
    moved_bytes: float | None,
    duration_ns: float | None,
    peak_flops: float | None,
    peak_bandwidth: float | None,
    *,
    blocks: int | None = None,
    sm_count: int | None = None,
) -> str | None:
    """Say what limits a kernel: `compute`, `memory` or `latency`; None where costs are not known.

    `latency`: far from both roofs, and either short enough for the launch to dominate or with
    fewer thread blocks than the device has SMs. What it waits for is then not told by its work.
    """
    least = least_ns(flops, moved_bytes, peak_flops, peak_bandwidth)
    if least is None or duration_ns is None or duration_ns <= 0:
        return None
    arithmetic, memory = least
    if max(least) < NEAR_ROOF * duration_ns:
        idle = blocks is not None and sm_count is not None and 0 < blocks < sm_count
        if idle or duration_ns < LAUNCH_NS:
            return "latency"
    if max(least) == 0:
        return None
    return "compute" if arithmetic >= memory else "memory"
