"""The user's source lines, sorted by their own time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.analysis.summary import source_lines
from pyprof.analysis.summary.source_lines import LineSums, line_times
from pyprof.answers.lines_answer import Lines
from pyprof.inputs.user_source import Sources
from pyprof.render.page import sections
from pyprof.render.text.formatting import duration, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Lines", 30


def summarise(gathered: PartInput) -> LineSums:
    """Sum up the chosen rows by line."""
    return source_lines.source_lines(gathered.source.table, gathered.overview.rows)


def section(page: Page) -> Mapping[str, Any] | None:
    """The lines that launched work themselves, and separately those that only call."""
    sums: LineSums = page.data
    lines = Lines(
        chosen=None,
        processor=sums.processor,
        total_ns=sums.total_ns,
        unknown_ns=sums.unknown_ns,
        lines=line_times(sums),
        advice=(),
    )
    if not lines.lines:
        return None
    code = sections.Code(Sources(page.sources)) if page.sources is not None else None
    return {
        "lines": sections.line_table(lines, page.selectable, code),
        "callers": sections.caller_table(lines, page.selectable, code),
        "excerpts": sections.excerpts(lines, code) if code is not None else [],
        "with_source": code is not None,
        "unknown": duration(lines.unknown_ns) if lines.unknown_ns else None,
        "unknown_percent": percent(lines.unknown_ns / max(lines.total_ns, 1)),
    }
