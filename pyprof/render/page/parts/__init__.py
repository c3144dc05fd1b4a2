"""The parts of the report's page. Each module here is a part, found automatically.

Each has a TITLE, an ORDER (the smallest comes first) and `section(page)`, which returns what its
template shows as `part`, or None if a capture has nothing for it. The template is the file
`templates/parts/NAME.html.j2`, or the text TEMPLATE. A part that needs more than the answer and the
facts also has `summarise`: its results, merged by `merge_sums`, become `page.data`.
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

    from pyprof.analysis.summary.overview import Overview
    from pyprof.answers.summary_answer import Summary
    from pyprof.inputs.source import Source
    from pyprof.render.page.cross_filter import AttributeIndex, FilterData


@dataclass(frozen=True, slots=True)
class PartInput:
    """One capture, for the parts to sum up."""

    source: Source
    overview: Overview
    facts: AttributeIndex
    snapshot: str | None = None
    """A memory snapshot of the same run, if the user names one."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a part is made from."""

    answer: Summary
    selectable: FilterData
    data: Any
    """The merged results of the part's own `summarise`; None if it has none."""
    sources: Path | None
    """The folder of the user's source, if its text may be shown."""


class Part(Protocol):
    """What a module of this package provides."""

    TITLE: str
    ORDER: int
    TEMPLATE: str
    """The text of the template, if it is not a file."""

    def section(self, page: Page) -> Mapping[str, Any] | None:
        """Return the values of the part's template; None if there is nothing to show."""

    def summarise(self, gathered: PartInput) -> Any:  # noqa: ANN401 - the part's own
        """Sum up a capture, small enough to send."""


@cache
def parts() -> Mapping[str, Part]:
    """Load the parts, in their order on the page."""
    modules = {
        module.name: cast("Part", import_module(f"{__name__}.{module.name}"))
        for module in pkgutil.iter_modules(__path__)
    }
    return dict(sorted(modules.items(), key=lambda entry: (entry[1].ORDER, entry[0])))


def summarise(gathered: PartInput) -> dict[str, Any]:
    """Sum up a capture for each part that asks for it."""
    return {
        name: part.summarise(gathered)
        for name, part in parts().items()
        if hasattr(part, "summarise")
    }


def templates() -> dict[str, str]:
    """Return the templates that are not files, by the names that files would have."""
    return {
        f"parts/{name}.html.j2": part.TEMPLATE
        for name, part in parts().items()
        if hasattr(part, "TEMPLATE")
    }
