"""A roofline as a picture, by matplotlib, without a display: PNG, SVG, PDF.

The names of the roofs are placed where they cover no point, if there is room.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.gpu.peaks import TERA
from pyprof.process.extras import require
from pyprof.render.roofline_legend import BOUNDS, UNKNOWN_BOUND, rates
from pyprof.render.text.formatting import percent
from pyprof.render.text.layout.text_width import cut_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from pyprof.answers.page.roofline_answer import Chart, Point, Roof
    from pyprof.arrays import Floats


_NAMED = 14
"""Points with a number and a line in the list beside the chart."""
_WIDTH_IN, _HEIGHT_IN, _DPI = 12.0, 6.5, 150
_MIN_AREA, _AREA = 12.0, 1400.0
"""Area in points squared of a point without time, and what a share of 1 adds to it."""
_FONT_SIZE = 8
_NAME_LETTERS, _LINE_LETTERS, _TITLE_LETTERS = 44, 56, 80
_MIN_DISTANCE = 0.018
"""Distance, in the size of the axes, at which two numbers would cover each other."""


def picture(chart: Chart, kind: str) -> bytes:
    """Draw the chart as `png`, `svg` or `pdf`; the same chart makes the same bytes.

    Raises PyprofError if matplotlib is not installed.
    """
    require("pictures", "matplotlib")
    from matplotlib import rc_context  # noqa: PLC0415 - extra
    from matplotlib.figure import Figure  # noqa: PLC0415 - extra

    with (
        rc_context({"svg.hashsalt": "pyprof", "svg.fonttype": "none"}),
        warnings.catch_warnings(),
    ):
        # a font lacks some letters of a name: they are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes, side = figure.subplots(1, 2, width_ratios=(3, 1.25))
        on = frame(chart.points, chart.roofs, 1, 1)
        for roof in chart.roofs:
            x = np.array([on.x[0], roof.ridge, on.x[1]])
            axes.plot(x, height_of(roof, x), color="#555555", linewidth=1.2, zorder=1)
        axes.set(xscale="log", yscale="log", xlabel="FLOP / byte", ylabel="TFLOP/s",
                 title=cut_end(chart.title, _TITLE_LETTERS), xlim=on.x, ylim=on.y)  # fmt: skip
        axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6, zorder=0)
        _points(axes, chart.points)
        _list(side, chart)
        figure.draw_without_rendering()  # now its parts have their sizes
        size = axes.get_window_extent().size * 72 / figure.dpi
        radii = [max(_area(point) ** 0.5 / 2, _FONT_SIZE) for point in chart.points]
        letter, line = 0.6 * _FONT_SIZE, 1.3 * _FONT_SIZE
        sized = replace(on, width=size[0], height=size[1])
        for label in labels(sized, chart.points, radii, chart.roofs, letter, line):
            axes.text(label.x, label.y, label.text, fontsize=_FONT_SIZE, color="#555555",
                      ha=label.align, va="bottom" if label.above else "top")  # fmt: skip
        file = io.BytesIO()
        undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(file, format=kind, dpi=_DPI, metadata=undated)
    return file.getvalue()


def _area(point: Point) -> float:
    return _MIN_AREA + _AREA * point.share


def _points(axes: Axes, points: list[Point]) -> None:
    for bound, colour in BOUNDS.items():
        chosen = [point for point in points if (point.bound or UNKNOWN_BOUND) == bound]
        if chosen:
            axes.scatter(
                [point.intensity for point in chosen],
                [point.flops_per_s / 1e12 for point in chosen],
                [_area(point) for point in chosen],
                color=colour, alpha=0.6, edgecolors=colour, label=bound, zorder=2,
            )  # fmt: skip
    _measured(axes, points)
    _number(axes, points[:_NAMED])
    # No point is in the upper left: it would be above every roof.
    handles = axes.legend(title="bound by", loc="upper left", fontsize=8).legend_handles
    for handle in handles:
        if handle is not None:
            handle.set_sizes([40])  # type: ignore[attr-defined]


def _measured(axes: Axes, points: list[Point]) -> None:
    """Draw each point at its intensity by measured traffic, linked to that by least traffic."""
    moved = [point for point in points if point.measured]
    for point in moved:
        axes.plot([point.measured or 0, point.intensity], [point.flops_per_s / 1e12] * 2,
                  color="#777777", linewidth=0.7, zorder=2)  # fmt: skip
    if moved:
        axes.scatter(
            [point.measured or 0 for point in moved],
            [point.flops_per_s / 1e12 for point in moved],
            [_area(point) for point in moved],
            facecolors="none", edgecolors="#333333", label="measured", zorder=2,
        )  # fmt: skip


def _number(axes: Axes, points: list[Point]) -> None:
    """Write each point's number in the list on it; points that cover each other share a label."""
    scale = axes.transScale + axes.transLimits  # from data to 0 ... 1 along each axis
    labels: list[tuple[float, float, list[int]]] = []
    for index, point in enumerate(points, 1):
        x, y = scale.transform((point.intensity, point.flops_per_s / 1e12))
        near = next(
            (of for at, up, of in labels if abs(at - x) + abs(up - y) < _MIN_DISTANCE), None
        )
        if near is None:
            labels.append((x, y, [index]))
        else:
            near.append(index)
    for x, y, places in labels:
        axes.text(x, y, ", ".join(map(str, places)), transform=axes.transAxes, fontsize=8,
                  ha="center", va="center", zorder=3)  # fmt: skip


def _list(side: Axes, chart: Chart) -> None:
    side.set_axis_off()
    lines = [
        f"{index:>2}  {percent(point.share):>4} %  {cut_end(point.name, _NAME_LETTERS)}\n"
        f"             {cut_end(point.kernel, _NAME_LETTERS)}\n             {rates(point)}"
        for index, point in enumerate(chart.points[:_NAMED], 1)
    ]
    lines += ["", *wrap(chart.summary, _LINE_LETTERS)]
    listed = "\n".join(lines).replace(" ", "\N{NO-BREAK SPACE}")  # SVG collapses several spaces
    shown = side.text(0, 1, listed, family="monospace", fontsize=6.5, va="top",
              parse_math=False)  # fmt: skip
    shown.set_in_layout(False)  # or a long line would leave the chart no room


_GAP = 3.0
"""Distance between a roof and its name."""
_APART = 12.0
"""Distance between positions that are tried, and between points of a roof that are kept clear."""


class Box(NamedTuple):
    """A rectangle of the picture, in its unit from the lower left."""

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
    """Whether y is the bottom of the text; else it is the top."""


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
        """Return the positions of values in the picture."""
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
    taken = []
    clear_x = np.geomspace(*on.x, int(on.width / _APART))
    for roof in roofs:
        at = np.stack(on.place(clear_x, height_of(roof, clear_x)), axis=1)
        taken += [Box(x, y, x, y) for x, y in at.tolist()]
    for point, radius in zip(points, radii, strict=True):
        x, y = map(float, on.place(point.intensity, point.flops_per_s / TERA))
        taken.append(Box(x - radius, y - radius, x + radius, y + radius))
    placed = []
    slopes = {roof.bytes_per_s: roof for roof in roofs}.values()
    wanted = [
        (roof.label, _flat_positions(on, roof, len(roof.label) * letter, line)) for roof in roofs
    ]
    for roof in slopes:
        text = f"{roof.bytes_per_s / 1e9:,.0f} GB/s"
        wanted.append((text, _slope_positions(on, roof, len(text) * letter, line)))
    for text, places in wanted:
        inside = [place for place in places if on.holds(place[0])] or places
        box, align, above = min(inside, key=lambda place: _count_covered(place[0], taken))
        taken.append(box)
        x = box.left if align == "left" else box.right
        placed.append(Label(text, *on.value(x, box.bottom if above else box.top), align, above))
    return placed


def _flat_positions(
    on: LogAxes, roof: Roof, width: float, line: float
) -> list[tuple[Box, str, bool]]:
    """Positions for a label along the flat part of a roof: closest first, from right to left."""
    ridge, y = map(float, on.place(roof.ridge, roof.flops_per_s / TERA))
    end = on.width - _GAP
    rights = [end, *np.arange(end - _APART, ridge, -_APART).tolist()]
    return [
        (Box(right - width, bottom, right, bottom + line), "right", above)
        for off in np.arange(_GAP, 3 * line, _GAP).tolist()
        for right in rights
        for above, bottom in ((True, y + off), (False, y - off - line))
    ]


def _slope_positions(
    on: LogAxes, roof: Roof, width: float, line: float
) -> list[tuple[Box, str, bool]]:
    """Positions for a label below the slope of a bandwidth, from its lower end on."""
    places = []
    ridge = float(on.place(roof.ridge, 1.0)[0])
    for left in np.arange(_GAP, max(ridge, 2 * _GAP), _APART).tolist():
        top = float(on.place(1.0, float(height_of(roof, on.value(left, 0)[0])))[1]) - _GAP
        places.append((Box(left + _GAP, top - line, left + _GAP + width, top), "left", False))
    return places


def _count_covered(box: Box, taken: Sequence[Box]) -> int:
    return sum(
        box.left < other.right and other.left < box.right
        and box.bottom < other.top and other.bottom < box.top
        for other in taken
    )  # fmt: skip
