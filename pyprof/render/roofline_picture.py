"""A roofline as a picture, by matplotlib, without a display: PNG, SVG, PDF."""

from __future__ import annotations

import io
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.roofline_points import BOUNDS, UNKNOWN
from pyprof.process.extras import require
from pyprof.render.roofline_frame import LogAxes, frame, height_of, labels
from pyprof.render.text.formatting import cut, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyprof.analysis.summary.roofline_points import Chart, Point

_NAMED = 14
"""Points with a number and a line in the list beside the chart."""
_WIDTH_IN, _HEIGHT_IN, _DPI = 12.0, 6.5, 150
_LEAST_AREA, _AREA = 12.0, 1400.0
"""Points squared: of a point of no time, and more for one of all time."""
_FONT_SIZE = 8
_NAME_LETTERS, _LINE_LETTERS, _TITLE_LETTERS = 44, 56, 80
_NEAR = 0.018
"""Distance, in the size of the axes, at which two numbers would cover each other."""


def picture(chart: Chart, kind: str) -> bytes:
    """Draw the chart as `png`, `svg` or `pdf`; the same chart gives the same bytes.

    Raises PyprofError where matplotlib is not installed.
    """
    require("pictures", "matplotlib")
    from matplotlib import rc_context  # noqa: PLC0415 - extra
    from matplotlib.figure import Figure  # noqa: PLC0415 - extra

    with rc_context({"svg.hashsalt": "pyprof", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes, side = figure.subplots(1, 2, width_ratios=(3, 1.25))
        on = frame(chart.points, chart.roofs, 1, 1)
        _roofs(axes, chart, on)
        _points(axes, chart.points)
        _list(side, chart)
        figure.draw_without_rendering()  # now its parts have their sizes
        size = axes.get_window_extent().size * 72 / figure.dpi
        _labels(axes, chart, replace(on, width=size[0], height=size[1]))
        file = io.BytesIO()
        undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(file, format=kind, dpi=_DPI, metadata=undated)
    return file.getvalue()


def _roofs(axes: Axes, chart: Chart, on: LogAxes) -> None:
    for roof in chart.roofs:
        x = np.array([on.x[0], roof.ridge, on.x[1]])
        axes.plot(x, height_of(roof, x), color="#555555", linewidth=1.2, zorder=1)
    axes.set(xscale="log", yscale="log", xlabel="FLOP / byte", ylabel="TFLOP/s",
             title=cut(chart.title, _TITLE_LETTERS), xlim=on.x, ylim=on.y)  # fmt: skip
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6, zorder=0)


def _labels(axes: Axes, chart: Chart, on: LogAxes) -> None:
    radii = [max(_area(point) ** 0.5 / 2, _FONT_SIZE) for point in chart.points]
    letter, line = 0.6 * _FONT_SIZE, 1.3 * _FONT_SIZE
    for label in labels(on, chart.points, radii, chart.roofs, letter, line):
        axes.text(label.x, label.y, label.text, fontsize=_FONT_SIZE, color="#555555",
                  ha=label.align, va="bottom" if label.above else "top")  # fmt: skip


def _area(point: Point) -> float:
    return _LEAST_AREA + _AREA * point.share


def _points(axes: Axes, points: list[Point]) -> None:
    for bound, colour in BOUNDS.items():
        chosen = [point for point in points if (point.bound or UNKNOWN) == bound]
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
    """Draw where each point is by its measured traffic, tied to where it is by the least."""
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
    """Write each point's place in the list on it; points that cover each other share a label."""
    scale = axes.transScale + axes.transLimits  # to 0 ... 1 over the axes
    labels: list[tuple[float, float, list[int]]] = []
    for place, point in enumerate(points, 1):
        x, y = scale.transform((point.intensity, point.flops_per_s / 1e12))
        near = next((of for at, up, of in labels if abs(at - x) + abs(up - y) < _NEAR), None)
        if near is None:
            labels.append((x, y, [place]))
        else:
            near.append(place)
    for x, y, places in labels:
        axes.text(x, y, ", ".join(map(str, places)), transform=axes.transAxes, fontsize=8,
                  ha="center", va="center", zorder=3)  # fmt: skip


def _list(side: Axes, chart: Chart) -> None:
    side.set_axis_off()
    lines = [
        f"{place:>2}  {percent(point.share):>4} %  {cut(point.name, _NAME_LETTERS)}\n"
        f"             {cut(point.kernel, _NAME_LETTERS)}\n             {point.rate}"
        for place, point in enumerate(chart.points[:_NAMED], 1)
    ]
    lines += ["", *wrap(chart.summary, _LINE_LETTERS)]
    listed = "\n".join(lines).replace(" ", "\N{NO-BREAK SPACE}")  # SVG makes one of many blanks
    shown = side.text(0, 1, listed, family="monospace", fontsize=6.5, va="top",
              parse_math=False)  # fmt: skip
    shown.set_in_layout(False)  # or a long line would leave the chart no room
