"""The ops that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page import sections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Ops", 7


def section(page: Page) -> Mapping[str, Any]:
    """The table of ops."""
    return {"ops": sections.ops(page.answer, page.selectable)}
