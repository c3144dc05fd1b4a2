"""The parts of the report's page. Each module below here is a part, found automatically.

Each has a TITLE, an ORDER (the smallest comes first) and `section(page)`, which returns what its
template shows as `part`, or None if a capture has nothing for it. The template is the file
`templates/parts/NAME.html.j2`, or the text TEMPLATE.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyprof.answers.page.report_answer import Report
    from pyprof.answers.summary_answer import Summary
    from pyprof.render.page.cross_filter import FilterData


@dataclass(frozen=True, slots=True)
class Page:
    """What a part is made from."""

    report: Report
    selectable: FilterData
    sources: Path | None
    """The folder of the user's source, if its text may be shown."""

    @property
    def answer(self) -> Summary:
        """The summary."""
        return self.report.summary


class Part(Protocol):
    """What a module of this package provides."""

    TITLE: str
    ORDER: int
    TEMPLATE: str
    """The text of the template, if it is not a file."""

    def section(self, page: Page) -> Mapping[str, Any] | None:
        """Return the values of the part's template; None if there is nothing to show."""


@cache
def parts() -> Mapping[str, Part]:
    """Load the parts, in their order on the page."""
    modules = {
        module.name.rpartition(".")[2]: cast("Part", import_module(module.name))
        for module in pkgutil.walk_packages(__path__, f"{__name__}.")
        if not module.ispkg
    }
    return dict(sorted(modules.items(), key=lambda entry: (entry[1].ORDER, entry[0])))


def templates() -> dict[str, str]:
    """Return the templates that are not files, by the names that files would have."""
    return {
        f"parts/{name}.html.j2": part.TEMPLATE
        for name, part in parts().items()
        if hasattr(part, "TEMPLATE")
    }
