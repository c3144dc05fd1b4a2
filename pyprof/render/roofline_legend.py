"""What every roofline shows of its points: the colours of what limits them, and their rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.quantities import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.page.roofline_answer import Point

UNKNOWN_BOUND = "unknown"
BOUNDS = {"compute": "#3b82c4", "memory": "#d9822b", "latency": "#9a9a9a", UNKNOWN_BOUND: "#4c9f70"}
"""What limits an op, and its colour."""


def colours(points: Sequence[Point]) -> dict[str, str]:
    """Return the colour of each bound that occurs among these points."""
    used = {point.bound or UNKNOWN_BOUND for point in points}
    return {bound: colour for bound, colour in BOUNDS.items() if bound in used}


def rates(point: Point) -> str:
    """Say what an op achieves, in arithmetic and in traffic."""
    return f"{number(point.flops_per_s / 1e12)} TFLOP/s, {number(point.bytes_per_s / 1e9)} GB/s"
