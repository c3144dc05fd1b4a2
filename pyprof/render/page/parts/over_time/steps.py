"""How long steps took: one after the other, by rank, and what the GPU did in some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.quantities import duration
from pyprof.render.page import figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Steps", 50


def section(page: Page) -> Mapping[str, Any] | None:
    """Return the figures of steps, and of ranks; None without several steps."""
    steps, times, strips = page.answer.steps, page.report.device_steps, page.report.strips
    first, last = steps.shown.start, steps.shown.stop
    count = last - first
    if strips is None or steps.averaged_count is None or count <= 1:  # the timeline shows as much
        return None
    several = len(times.devices) > 1
    trend = figures.trend(steps)
    shares = figures.shares_of_peak(trend)
    strip = figures.strip(strips)
    return {
        "count": count,
        "origin": steps.described_origin,
        "warm_up": trend["warm_up"],
        "median": duration(trend["median"]),
        "trend": trend,
        "shares": shares,
        "share_colours": shares["colours"] if shares else {},
        "peak": page.answer.utilization.peak_flops_label,
        "heat": figures.heat_map(times, first, last) if several else None,
        "ranks_left_out": times.left_out,
        "strip": strip,
        "strip_left_out": strips.steps_left_out,
        "devices_left_out": strips.devices_left_out,
        "colours": {name: colour for name, colour in figures.WORK.items() if name in strip["work"]},
    }
