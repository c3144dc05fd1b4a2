"""Potential gains, with their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Advice", 20


def section(page: Page) -> Mapping[str, Any]:
    """Give the advice, in its order."""
    times = page.brief.times
    return {
        "advice": sections.advice(page.brief),
        "scope": page.brief.scope.sentences(found=bool(page.brief.advice)),
        "several": times is not None and len(times.devices) > 1,
    }
