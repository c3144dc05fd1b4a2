"""The parts of a page, as shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyprof.analysis.summary.overview import summary
from pyprof.render.page import parts
from pyprof.render.page.content import Content
from pyprof.render.page.cross_filter import FilterData


def shown(found: Content, sources: Path | None = None) -> dict[str, Mapping[str, Any]]:
    selectable = FilterData(found.facts)
    made = {
        name: part.section(
            parts.Page(summary(found.summary), selectable, found.parts.get(name), sources)
        )
        for name, part in parts.parts().items()
    }
    return {name: section for name, section in made.items() if section is not None}
