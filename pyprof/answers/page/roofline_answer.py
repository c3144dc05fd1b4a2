"""The answer of `pyprof roofline`: points below roofs, and the time that they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.prof.processor import GPU
from pyprof.quantities import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One op as one kernel computes it."""

    op: str | None
    dir: str | None
    kernel: str
    bound: str | None
    line: str | None
    """The source line with most of its time."""
    lines: int
    """Number of its source lines."""
    efficiency: float | None
    """Share of the roofline, weighted by time, as for ops."""
    intensity: float
    """FLOPs per byte."""
    flops_per_s: float
    bytes_per_s: float
    time_ns: int
    share: float
    """Share of the summed GPU time, 0 to 1."""
    measured: float | None = None
    """Intensity by the DRAM traffic that counters measured, FLOPs per byte."""

    @property
    def name(self) -> str:
        """Name the op, for people."""
        return f"{self.op or '-'}{' (backward)' if self.dir == 'bprop' else ''}"


@dataclass(frozen=True, slots=True)
class Roof:
    """A peak of arithmetic over one of bandwidth."""

    flops_per_s: float
    bytes_per_s: float
    label: str

    @property
    def ridge(self) -> float:
        """The intensity at which both limits are equal, FLOPs per byte."""
        return self.flops_per_s / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Chart:
    """One roofline, with at least one point."""

    title: str
    points: list[Point]
    """The longest first."""
    roofs: list[Roof]
    """Those with most time first; none for an unknown device."""
    processor: str = GPU
    """The kind of processor whose time it is."""

    @property
    def summary(self) -> str:
        """Say how much is drawn, and why there may be no roof."""
        share = sum(point.share for point in self.points)
        text = f"{counted(len(self.points), 'op')}, {100 * share:.1f} % of {self.processor} time"
        if self.roofs:
            return text
        return (
            f"{text}; no peaks known for the device: use --gpu NAME,"
            " --gpu flops=F,bandwidth=B or, after pyprof peaks --measure, --gpu measured"
        )
