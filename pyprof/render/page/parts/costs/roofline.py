"""What ops achieve, below the roofs of their device: in the report, and as a page of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import figures, render
from pyprof.render.roofline_legend import colours
from pyprof.render.text.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.page.roofline_answer import Chart
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Roofline", 80


def section(page: Page) -> Mapping[str, Any]:
    """Return the figure, and its points' share of the time."""
    points, roofs = page.report.points, page.report.roofs
    keys = [
        page.selectable.key(op=point.op, dir=point.dir, kernel=point.kernel, bound=point.bound)
        for point in points
    ]
    return {
        "roofline": figures.roofline(points, roofs, keys) if points else None,
        "roofs": bool(roofs),
        "shown_percent": percent(sum(point.share for point in points)),
        "bound_colours": colours(points),
    }


def page_of(chart: Chart) -> str:
    """Make a page of the roofline alone."""
    return render(
        "roofline.html.j2",
        title="Roofline",
        device=chart.title,
        summary=chart.summary,
        processor=chart.processor,
        bound_colours=colours(chart.points),
        roofline=figures.roofline(chart.points, chart.roofs),
    )
