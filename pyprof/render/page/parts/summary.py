"""The headline numbers, parts of the step, causes of idle time, and each GPU on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections
from pyprof.render.text.summary_text import SERVING_HEADER, serving_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Summary", 10


def section(page: Page) -> Mapping[str, Any]:
    """Give the cards, and what stands below them."""
    times = page.brief.times
    devices = sections.devices(page.brief)
    return {
        "cards": list(sections.cards(page.brief)),
        "phases": sections.phases(page.brief),
        "serving_header": SERVING_HEADER,
        "serving": serving_rows(page.brief),
        "vias": sections.vias(page.brief),
        "causes": sections.causes(page.brief),
        "devices": devices,
        "devices_left_out": len(times.devices) - len(devices) if times else 0,
    }
