"""Why costs are unknown, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Unknown cost", 90


def section(page: Page) -> Mapping[str, Any] | None:
    """Give the reasons, those of most time first; None where every cost is known."""
    coverage = page.brief.coverage
    if not coverage.unknown:
        return None
    return {"unknown": sections.unknown(coverage), "percent": f"{100 - coverage.percent:.1f}"}
