"""Pages of captures, and their parts, as shown."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyprof.analysis.report import ReportSums, report, summarise_report
from pyprof.inputs import source
from pyprof.render.page import parts
from pyprof.render.page.content import html
from pyprof.render.page.cross_filter import FilterData


def sums_of(capture: Path) -> ReportSums:
    return summarise_report(source.load(str(capture)))


def page_of(capture: Path) -> str:
    return html(report(sums_of(capture)))


def shown(sums: ReportSums, sources: Path | None = None) -> dict[str, Mapping[str, Any]]:
    answer = report(sums)
    page = parts.Page(answer, FilterData(answer.attributes), sources)
    made = {name: part.section(page) for name, part in parts.parts().items()}
    return {name: section for name, section in made.items() if section is not None}
