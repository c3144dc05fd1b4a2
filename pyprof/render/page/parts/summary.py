"""The headline numbers, parts of the step, causes of idle time, and each GPU on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections
from pyprof.render.text.summary_text import SERVING_HEADER, serving_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Time", 10


def section(page: Page) -> Mapping[str, Any]:
    """The cards, and the tables below them."""
    answer = page.answer
    devices = sections.devices(answer)
    return {
        "cards": list(sections.cards(answer)),
        "phases": sections.phases(answer),
        "serving_header": SERVING_HEADER,
        "serving": serving_rows(answer),
        "vias": sections.link_methods(answer),
        "causes": sections.causes(answer),
        "devices": devices,
        "devices_left_out": len(answer.devices or ()) - len(devices),
    }
