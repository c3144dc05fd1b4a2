"""How long steps took: one after the other, by rank, and what the GPU did in some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.render.page import figures
from pyprof.render.page.step_times import StepTimes, step_times
from pyprof.render.page.strips import Strips, strips
from pyprof.render.text.formatting import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Steps", 50


class StepData(NamedTuple):
    """What the figures are drawn from."""

    times: StepTimes
    strips: Strips | None
    """None if the records hold no times."""


def summarise(gathered: PartInput) -> StepData:
    """Measure the steps of a capture."""
    return StepData(step_times(gathered), strips(gathered.source, gathered.overview))


def section(page: Page) -> Mapping[str, Any] | None:
    """Return the figures of steps, and of ranks; None without several steps."""
    steps, data = page.answer.steps, page.data
    shown = data.strips.strip(steps) if data.strips else None
    first, last = steps.shown.start, steps.shown.stop
    count = last - first
    if shown is None or steps.averaged_count is None or count <= 1:  # the timeline shows as much
        return None
    several = len(data.times.names) > 1
    trend = figures.trend(steps)
    shares = figures.shares_of_peak(trend)
    return {
        "count": count,
        "origin": steps.described_origin,
        "warm_up": 0 if steps.are_chosen else steps.warm_up_count,
        "median": duration(steps.median_ns),
        "trend": trend,
        "shares": shares,
        "share_colours": shares["colours"] if shares else {},
        "peak": page.answer.utilization.peak_flops_label,
        "heat": figures.heat_map(data.times, first, last) if several else None,
        "ranks_left_out": data.times.left_out,
        "strip": figures.strip(shown),
        "strip_left_out": shown.steps_left_out,
        "devices_left_out": data.strips.devices_left_out,
        "colours": figures.SORTS,
    }
