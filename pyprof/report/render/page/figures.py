"""Figures of a page by Bokeh, each as the JSON that its script draws: hover, zoom, no server.

Bokeh because its script is 1.3 MB, with which a page stays far below 5 MB; Plotly's is 4.5 MB.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof import cli
from pyprof.report.analysis.bounds import BOUNDS, UNKNOWN
from pyprof.report.render import roofline_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bokeh.plotting import figure as Figure  # noqa: N812 - it is a class

    from pyprof.report.analysis.roofline import Point, Roof
    from pyprof.report.render.page.icicle import IcicleBox
    from pyprof.report.render.page.timeline import Strip

SORTS = {"compute": "#3b82c4", "communication": "#d9822b", "copy": "#8e6bbf"}
_SHADES = ("#4e79a7", "#76a5c9", "#59a14f", "#8cc97f", "#b6992d", "#e0bd52", "#499894", "#86bcb6")
_WIDTH = 1280
_AXES_PX = 60
"""What axes and tools take of a figure's width, and nearly of its height."""
_PX_PER_LETTER, _PX_PER_LINE = 6.2, 14


def script() -> str:
    """Give Bokeh's own script, to stand in the page."""
    cli.need("pages", "Bokeh", "Jinja2")
    from bokeh.resources import Resources  # noqa: PLC0415 - extra

    resources = Resources(mode="inline", components=["bokeh"], log_level="error")
    return "\n".join(text.replace("</script", "<\\/script") for text in resources.js_raw)


def _figure(height: int, **options: Any) -> Figure:  # noqa: ANN401 - Bokeh's
    from bokeh.plotting import figure  # noqa: PLC0415 - extra

    plot = figure(
        height=height,
        width=_WIDTH,
        sizing_mode="stretch_width",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_alpha=0,
        toolbar_location="right",
        output_backend="canvas",
        **options,
    )
    plot.toolbar.logo = None
    return plot


def _item(plot: Figure) -> Mapping[str, Any]:
    from bokeh.embed import json_item  # noqa: PLC0415 - extra

    item: Mapping[str, Any] = json_item(plot)
    return item


def roofline(points: Sequence[Point], roofs: Sequence[Roof]) -> Mapping[str, Any]:
    """Draw what ops achieve over their arithmetic intensity, below the roofs of their device."""
    on = roofline_frame.frame(points, roofs, _WIDTH - _AXES_PX, 430 - _AXES_PX)
    plot = _figure(430, x_axis_type="log", y_axis_type="log", tools="pan,wheel_zoom,box_zoom,reset",
                   x_range=on.x, y_range=on.y,
                   x_axis_label="FLOP / byte", y_axis_label="TFLOP/s")  # fmt: skip
    for roof in roofs:
        x = np.array([on.x[0], roof.ridge, on.x[1]])
        plot.line(x, roofline_frame.height_of(roof, x), line_width=1.5, line_alpha=0.8)
    radii = [_size(point) / 2 for point in points]
    for label in roofline_frame.labels(on, points, radii, roofs, _PX_PER_LETTER, _PX_PER_LINE):
        plot.text([label.x], [label.y], [label.text], text_align=label.align,
                  text_baseline="bottom" if label.above else "top",
                  text_font_size="11px", text_color="#888888")  # fmt: skip
    _measured(plot, points)
    _points(plot, points)
    return _item(plot)


def _measured(plot: Figure, points: Sequence[Point]) -> None:
    """Draw where points are by their measured traffic, tied to where they are by the least."""
    moved = [point for point in points if point.measured]
    if not moved:
        return
    rates = [point.flops_per_s / 1e12 for point in moved]
    measured = [point.measured or 0.0 for point in moved]
    plot.segment(measured, rates, [point.intensity for point in moved], rates,
                 line_color="#888888", line_alpha=0.7)  # fmt: skip
    plot.scatter(measured, rates, size=[_size(point) for point in moved], fill_alpha=0,
                 line_color="#888888", legend_label="by measured DRAM traffic")  # fmt: skip
    plot.legend.label_text_font_size = "11px"


def _size(point: Point) -> float:
    return 6 + 34 * float(point.share**0.5)


def _points(plot: Figure, points: Sequence[Point]) -> None:
    from bokeh.models import ColumnDataSource, HoverTool  # noqa: PLC0415 - extra

    source = ColumnDataSource(
        {
            "x": [point.intensity for point in points],
            "y": [point.flops_per_s / 1e12 for point in points],
            "size": [_size(point) for point in points],
            "color": [BOUNDS[point.bound or UNKNOWN] for point in points],
            "name": [point.name for point in points],
            "kernel": [point.kernel for point in points],
            "time": [point.time for point in points],
            "rate": [point.rate for point in points],
            "bound": [point.bound or UNKNOWN for point in points],
        }
    )
    drawn = plot.scatter("x", "y", size="size", color="color", fill_alpha=0.6, line_alpha=0.9,
                         source=source)  # fmt: skip
    labels = [("op", "@name"), ("kernel", "@kernel"), ("time", "@time"), ("achieved", "@rate"),
              ("bound", "@bound")]  # fmt: skip
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=labels))


def icicle(boxes: Sequence[IcicleBox], total_ns: float, processor: str) -> Mapping[str, Any]:
    """Draw a tree as boxes below their parents, as wide as their time."""
    from bokeh.models import ColumnDataSource, HoverTool  # noqa: PLC0415 - extra

    levels = 1 + max(box.depth for box in boxes)
    plot = _figure(40 + 26 * levels, tools="xpan,xwheel_zoom,reset",
                   x_range=(0, total_ns / 1e6), y_range=(levels, 0),
                   x_axis_label=f"{processor} time, ms")  # fmt: skip
    plot.yaxis.visible = plot.ygrid.visible = plot.xgrid.visible = False
    source = ColumnDataSource(
        {
            "left": [box.start_ns / 1e6 for box in boxes],
            "right": [(box.start_ns + box.total_ns) / 1e6 for box in boxes],
            "top": [box.depth + 0.04 for box in boxes],
            "bottom": [box.depth + 0.96 for box in boxes],
            "middle": [box.depth + 0.5 for box in boxes],
            "color": [_SHADES[box.colour % len(_SHADES)] for box in boxes],
            "name": [box.path for box in boxes],
            "full": [box.name for box in boxes],
            "label": [""] * len(boxes),  # filled in by figures.js, as far as it is visible
            "at": [box.start_ns / 1e6 for box in boxes],
            "times": [box.times for box in boxes],
        }
    )
    drawn = plot.quad("left", "right", "top", "bottom", color="color", line_color="#ffffff80",
                      line_width=0.5, source=source)  # fmt: skip
    plot.text("at", "middle", "label", name="fitted", x_offset=4, text_baseline="middle",
              text_color="#10151a", text_font_size="11px", source=source)  # fmt: skip
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=[("", "@name"), ("", "@times")]))
    return _item(plot)


def strip(data: Strip) -> Mapping[str, Any]:
    """Draw steps below each other, each bin as dark as it is busy; what stays empty is idle."""
    from bokeh.models import ColumnDataSource, HoverTool  # noqa: PLC0415 - extra

    plot = _figure(70 + 24 * len(data.labels), tools="xpan,xwheel_zoom,xbox_zoom,reset",
                   x_range=(0, data.longest_ns / 1e6), y_range=list(reversed(data.labels)),
                   x_axis_label="ms from the step's start")  # fmt: skip
    plot.ygrid.visible = False
    plot.hbar(y=data.labels, left=0, right=[ns / 1e6 for ns in data.length_ns], height=0.8,
              fill_alpha=0.10, fill_color="#888888", line_alpha=0)  # fmt: skip
    source = ColumnDataSource(
        {
            "y": [data.labels[row] for row in data.row],
            "left": np.round(data.left_ns / 1e6, 6),
            "right": np.round(data.right_ns / 1e6, 6),
            "alpha": np.round(0.15 + 0.85 * data.busy, 3),
            "busy": np.round(100 * data.busy, 1),
            "sort": data.sort,
            "color": [SORTS[sort] for sort in data.sort],
        }
    )
    drawn = plot.hbar(y="y", left="left", right="right", height=0.8, fill_alpha="alpha",
                      fill_color="color", line_alpha=0, source=source)  # fmt: skip
    plot.add_tools(HoverTool(renderers=[drawn], tooltips=[
        ("step", "@y"), ("from", "@left{0.000} ms"), ("to", "@right{0.000} ms"),
        ("busy", "@busy %"), ("mostly", "@sort")]))  # fmt: skip
    return _item(plot)
