"""A roofline as a picture, by matplotlib, without a display: PNG, SVG, PDF."""

from __future__ import annotations

import io
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from pyprof.errors import PyprofError
from pyprof.report.bounds import BOUNDS, UNKNOWN
from pyprof.report.text import cut, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyprof.report.page.roofline import Point
    from pyprof.report.roofline_data import Chart

_NAMED = 14
"""Points with a number and a line in the list beside the chart."""
_WIDTH_IN, _HEIGHT_IN, _DPI = 12.0, 6.5, 150
_LEAST_AREA, _AREA = 12.0, 1400.0
"""Points squared: of a point of no time, and more for one of all time."""
_SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": "#555555"}
_NAME_LETTERS, _LINE_LETTERS, _TITLE_LETTERS = 44, 56, 80
_NEAR = 0.018
"""Distance, in the size of the axes, at which two numbers would cover each other."""


def picture(chart: Chart, kind: str) -> bytes:
    """Draw the chart as `png`, `svg` or `pdf`; the same chart gives the same bytes.

    Raises PyprofError where matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - extra
        from matplotlib.figure import Figure  # noqa: PLC0415 - extra
    except ImportError:
        raise PyprofError(
            "pictures need matplotlib: pip install 'torch-pyprof[report]', or write .html"
        ) from None
    with rc_context({"svg.hashsalt": "pyprof", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes, side = figure.subplots(1, 2, width_ratios=(3, 1.25))
        _roofs(axes, chart)
        _points(axes, chart.points)
        _list(side, chart)
        file = io.BytesIO()
        undated = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        figure.savefig(file, format=kind, dpi=_DPI, metadata=undated)
    return file.getvalue()


def _roofs(axes: Axes, chart: Chart) -> None:
    low = min(point.intensity for point in chart.points) / 3
    high = max(point.intensity for point in chart.points) * 3
    low = min([low, *(roof.ridge / 3 for roof in chart.roofs)])
    high = max([high, *(roof.ridge * 8 for roof in chart.roofs)])
    for roof in chart.roofs:
        x = (low, roof.ridge, high)
        y = [min(roof.flops_per_s, at * roof.bytes_per_s) / 1e12 for at in x]
        axes.plot(x, y, color="#555555", linewidth=1.2, zorder=1)
    for bandwidth in dict.fromkeys(roof.bytes_per_s for roof in chart.roofs):
        at = (low, low * bandwidth / 1e12)
        axes.annotate(f"{bandwidth / 1e9:,.0f} GB/s", at, (6, 0), va="top", **_SMALL)
    for roof in chart.roofs:
        axes.annotate(roof.label, (high, roof.flops_per_s / 1e12), (-2, 3), ha="right", **_SMALL)
    axes.set(xscale="log", yscale="log", xlabel="FLOP / byte", ylabel="TFLOP/s",
             title=cut(chart.title, _TITLE_LETTERS), xlim=(low, high))  # fmt: skip
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6, zorder=0)


def _points(axes: Axes, points: list[Point]) -> None:
    for bound, colour in BOUNDS.items():
        chosen = [point for point in points if (point.bound or UNKNOWN) == bound]
        if chosen:
            axes.scatter(
                [point.intensity for point in chosen],
                [point.flops_per_s / 1e12 for point in chosen],
                [_LEAST_AREA + _AREA * point.share for point in chosen],
                color=colour, alpha=0.6, edgecolors=colour, label=bound, zorder=2,
            )  # fmt: skip
    _number(axes, points[:_NAMED])
    handles = axes.legend(title="bound by", loc="lower right", fontsize=8).legend_handles
    for handle in handles:
        if handle is not None:
            handle.set_sizes([40])  # type: ignore[attr-defined]


def _number(axes: Axes, points: list[Point]) -> None:
    """Write each point's place in the list on it; points that cover each other share a label."""
    axes.autoscale_view()  # else the limits are those of before the points
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
    shown = side.text(0, 1, "\n".join(lines), family="monospace", fontsize=6.5, va="top",
              parse_math=False)  # fmt: skip
    shown.set_in_layout(False)  # or a long line would leave the chart no room
