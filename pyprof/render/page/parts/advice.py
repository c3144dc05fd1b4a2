"""Potential gains, with their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections
from pyprof.render.text.summary_text import scope_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "What to do", 6


def section(page: Page) -> Mapping[str, Any]:
    """The advice, in its order."""
    return {
        "advice": sections.advice(page.answer),
        "scope": scope_sentences(page.answer),
        "several": len(page.answer.devices or ()) > 1,
    }
