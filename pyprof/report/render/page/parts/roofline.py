"""What ops achieve, below the roofs of their device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.report.analysis import roofline
from pyprof.report.analysis.roofline import Achieved, achieved
from pyprof.report.render.page import figures
from pyprof.report.render.text import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.report.render.page.parts import Gathered, Page

TITLE, ORDER = "Roofline", 80

_MOST_POINTS = 400
_MOST_ROOFS = 4


def summarise(gathered: Gathered) -> Achieved:
    """Sum up the chosen rows."""
    return achieved(gathered.source.table, gathered.overview.rows)


def merge_data(a: Achieved, b: Achieved) -> Achieved:
    """Add up two captures'."""
    return a.plus(b)


def section(page: Page) -> Mapping[str, Any]:
    """Give the figure, and how much of the time its points stand for."""
    work: Achieved = page.data
    points = roofline.points(work, _MOST_POINTS)
    roofs = roofline.roofs(work, _MOST_ROOFS)
    keys = [
        page.selectable.key(op=point.op, dir=point.dir, kernel=point.kernel, bound=point.bound)
        for point in points
    ]
    return {
        "roofline": figures.roofline(points, roofs, keys) if points else None,
        "roofs": bool(roofs),
        "shown_percent": percent(sum(point.share for point in points)),
        "bound_colours": roofline.colours(points),
    }
