"""What ran when on each stream, in lanes of boxes, and below them why a GPU idled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.quantities import duration
from pyprof.render.page import figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Timeline", 40


def section(page: Page) -> Mapping[str, Any] | None:
    """Return the figure, and a note of what is not drawn."""
    drawn = page.report.lanes
    if drawn is None:
        return None
    rows = [lane.rows for device in drawn.devices for lane in device.lanes]
    gaps = sum(device.gaps_left_out for device in drawn.devices)
    used = {gap.cause for device in drawn.devices for gap in device.gaps}
    return {
        "timeline": figures.timeline(drawn, page.selectable),
        "joined": sum(int(each[each > 1].sum()) for each in rows),
        "single": sum(int((each == 1).sum()) for each in rows),
        "gaps_left_out": gaps,
        "gaps_time": duration(sum(device.left_out_ns for device in drawn.devices)),
        "devices_left_out": drawn.devices_left_out,
        "streams_left_out": drawn.streams_left_out,
        "marks_left_out": drawn.marks_left_out if drawn.captures == 1 else 0,
        "captures": drawn.captures,
        "causes": [(name, figures.IDLE[name], meaning)
                   for name, meaning in figures.meanings_of_idle(drawn).items() if name in used],
    }  # fmt: skip
