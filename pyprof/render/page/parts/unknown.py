"""Why costs are unknown, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Unknown cost", 90


def section(page: Page) -> Mapping[str, Any] | None:
    """The reasons, those of most time first; None if every cost is known."""
    known = page.answer.known_cost
    if not known.unknown:
        return None
    percent = f"{100 - 100 * known.known_share:.1f}"
    return {"unknown": sections.unknown(known), "percent": percent}
