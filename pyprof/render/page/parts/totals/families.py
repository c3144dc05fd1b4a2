"""Time by the kind of computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import shares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Families", 60


def section(page: Page) -> Mapping[str, Any]:
    """A bar for each family; a click on its name selects it."""
    return {
        "families": [
            (name, time, part, page.selectable.key(family=name))
            for name, time, part in shares(page.answer.families_ns)
        ]
    }
