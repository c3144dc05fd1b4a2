"""The plane of a roofline, and where on it the names of the roofs cover no point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.analysis.summary.roofline_points import Point, Roof
    from pyprof.arrays import Floats


TERA = 1e12
_GAP = 3.0
"""Between a roof and its name."""
_APART = 12.0
"""Between places that are tried, and between the parts of a roof that are kept clear."""


class Box(NamedTuple):
    """A place on the plane, in its units from the lower left."""

    left: float
    bottom: float
    right: float
    top: float


class Label(NamedTuple):
    """The name of a roof: its corner next to the roof, in the axes' values."""

    text: str
    x: float
    """FLOP a byte."""
    y: float
    """TFLOP/s."""
    align: str
    """`left` or `right`: which end of the text is at x."""
    above: bool
    """Whether it stands on y or hangs from it."""


@dataclass(frozen=True, slots=True)
class LogAxes:
    """Logarithmic axes over a picture of some size, in pixels or any other unit."""

    x: tuple[float, float]
    """FLOP a byte."""
    y: tuple[float, float]
    """TFLOP/s."""
    width: float
    height: float

    def place(self, x: float | Floats, y: float | Floats) -> tuple[Floats, Floats]:
        """Return the positions of values."""
        (left, right), (bottom, top) = np.log(self.x), np.log(self.y)
        return (
            np.asarray((np.log(x) - left) / (right - left) * self.width),
            np.asarray((np.log(y) - bottom) / (top - bottom) * self.height),
        )

    def holds(self, box: Box) -> bool:
        """Whether a box lies inside."""
        return min(box.left, box.bottom) >= 0 and box.right <= self.width and box.top <= self.height

    def value(self, x: float, y: float) -> tuple[float, float]:
        """Return the values at a position."""
        (left, right), (bottom, top) = self.x, self.y
        return (
            float(left * (right / left) ** (x / self.width)),
            float(bottom * (top / bottom) ** (y / self.height)),
        )


def frame(points: Sequence[Point], roofs: Sequence[Roof], width: float, height: float) -> LogAxes:
    """Return the axes that hold all points and both sides of every ridge."""
    at = [point.intensity for point in points]
    at += [point.measured for point in points if point.measured]
    low = min([min(at) / 3, *(roof.ridge / 3 for roof in roofs)])
    high = max([max(at) * 3, *(roof.ridge * 8 for roof in roofs)])
    rates = [point.flops_per_s / TERA for point in points]
    rates += [float(height_of(roof, x)) for roof in roofs for x in (low, high)]
    return LogAxes((low, high), (min(rates) / 2, max(rates) * 2), width, height)


def height_of(roof: Roof, x: float | Floats) -> Floats:
    """Return the rate that a roof allows at an intensity, TFLOP/s."""
    return np.asarray(np.minimum(roof.flops_per_s, np.multiply(x, roof.bytes_per_s)) / TERA)


def labels(
    on: LogAxes, points: Sequence[Point], radii: Sequence[float], roofs: Sequence[Roof],
    letter: float, line: float,
) -> list[Label]:  # fmt: skip
    """Name each roof and each bandwidth where no point, roof or other name is, if there is room.

    `radii` of the points, the mean width of a `letter` and the height of a `line` of text are in
    the frame's unit.
    """
    taken = [*_points(on, points, radii), *(box for roof in roofs for box in _line(on, roof))]
    placed = []
    slopes = {roof.bytes_per_s: roof for roof in roofs}.values()
    wanted = [(roof.label, _flat(on, roof, len(roof.label) * letter, line)) for roof in roofs]
    for roof in slopes:
        text = f"{roof.bytes_per_s / 1e9:,.0f} GB/s"
        wanted.append((text, _slope(on, roof, len(text) * letter, line)))
    for text, places in wanted:
        inside = [place for place in places if on.holds(place[0])] or places
        box, align, above = min(inside, key=lambda place: _covered(place[0], taken))
        taken.append(box)
        x = box.left if align == "left" else box.right
        placed.append(Label(text, *on.value(x, box.bottom if above else box.top), align, above))
    return placed


def _points(on: LogAxes, points: Sequence[Point], radii: Sequence[float]) -> Iterator[Box]:
    for point, radius in zip(points, radii, strict=True):
        x, y = map(float, on.place(point.intensity, point.flops_per_s / TERA))
        yield Box(x - radius, y - radius, x + radius, y + radius)


def _line(on: LogAxes, roof: Roof) -> Iterator[Box]:
    x = np.geomspace(*on.x, int(on.width / _APART))
    for left, bottom in np.stack(on.place(x, height_of(roof, x)), axis=1).tolist():
        yield Box(left, bottom, left, bottom)


def _flat(on: LogAxes, roof: Roof, width: float, line: float) -> list[tuple[Box, str, bool]]:
    """Positions for a label along the flat part of a roof: right ones first, then further off."""
    ridge, y = map(float, on.place(roof.ridge, roof.flops_per_s / TERA))
    end = on.width - _GAP
    rights = [end, *np.arange(end - _APART, ridge, -_APART).tolist()]
    return [
        (Box(right - width, bottom, right, bottom + line), "right", above)
        for off in np.arange(_GAP, 3 * line, _GAP).tolist()
        for right in rights
        for above, bottom in ((True, y + off), (False, y - off - line))
    ]


def _slope(on: LogAxes, roof: Roof, width: float, line: float) -> list[tuple[Box, str, bool]]:
    """Positions for a label below the slope of a bandwidth, from its lower end on."""
    places = []
    ridge = float(on.place(roof.ridge, 1.0)[0])
    for left in np.arange(_GAP, max(ridge, 2 * _GAP), _APART).tolist():
        top = float(on.place(1.0, float(height_of(roof, on.value(left, 0)[0])))[1]) - _GAP
        places.append((Box(left + _GAP, top - line, left + _GAP + width, top), "left", False))
    return places


def _covered(box: Box, taken: Sequence[Box]) -> int:
    return sum(
        box.left < other.right and other.left < box.right
        and box.bottom < other.top and other.bottom < box.top
        for other in taken
    )  # fmt: skip
