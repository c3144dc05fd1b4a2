"""The parts of a page, as shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyprof.analysis.report import ReportSums, report
from pyprof.render.page import parts
from pyprof.render.page.cross_filter import FilterData


def shown(sums: ReportSums, sources: Path | None = None) -> dict[str, Mapping[str, Any]]:
    answer = report(sums)
    page = parts.Page(answer, FilterData(answer.attributes), sources)
    made = {name: part.section(page) for name, part in parts.parts().items()}
    return {name: section for name, section in made.items() if section is not None}
