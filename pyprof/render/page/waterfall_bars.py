"""The waterfall as bars: A's time, what each op adds or saves, and B's time, on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.diff.waterfall import Stage

WIDTH = 1000
"""Length of the axis, in units of the picture."""
_LEAST_PART = 0.25
"""Of the longest time: where all changes are within less, the axis does not begin at 0."""
_MARGIN = 0.5
"""Of the changes' range, between the axis's beginning and the shortest time."""


class Bar(NamedTuple):
    """One bar, in units of the picture."""

    left: float
    length: float
    sort: str
    """`total`, `slower` or `faster`."""
    end: float
    """Where the next bar joins on."""


class Bars(NamedTuple):
    """The bars of A, of each stage and of B."""

    begin_ns: float
    """Where the axis begins; 0 unless changes would be too small to see."""
    bars: Sequence[Bar]


def bars(stages: Sequence[Stage]) -> Bars:
    """Place the bars; there must be a stage."""
    levels = [stages[0].from_ns, *(stage.to_ns for stage in stages)]
    begin_ns = _begin(levels)
    scale = WIDTH / ((max(levels) - begin_ns) or 1)

    def place(ns: float) -> float:
        return round((ns - begin_ns) * scale, 2)

    def total(ns: float) -> Bar:
        return Bar(0, place(ns), "total", place(ns))

    moved = [
        Bar(
            place(min(stage.from_ns, stage.to_ns)),
            round(abs(stage.delta_ns) * scale, 2),
            "slower" if stage.delta_ns > 0 else "faster",
            place(stage.to_ns),
        )
        for stage in stages
    ]
    return Bars(begin_ns, [total(levels[0]), *moved, total(levels[-1])])


def _begin(levels: Sequence[float]) -> float:
    low, high = min(levels), max(levels)
    return max(low - _MARGIN * (high - low), 0.0) if high - low < _LEAST_PART * high else 0.0
