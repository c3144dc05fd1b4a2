"""The roofline as a page of its own: hover and zoom, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.analysis.summary import roofline_points
from pyprof.render import page
from pyprof.render.page import figures
from pyprof.version import __version__

if TYPE_CHECKING:
    from pyprof.analysis.summary.roofline_points import Chart


def html(chart: Chart) -> str:
    """Make the page."""
    return page.render(
        "roofline.html.j2",
        version=__version__,
        title="Roofline",
        device=chart.title,
        summary=chart.summary,
        processor=chart.processor,
        bound_colours=roofline_points.colours(chart.points),
        roofline=figures.roofline(chart.points, chart.roofs),
    )
