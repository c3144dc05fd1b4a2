"""What the report's page shows of a capture, small enough to send; that of several makes one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyprof import __version__
from pyprof.inputs.source import each_once
from pyprof.report.analysis import op_totals, roofline, source_lines
from pyprof.report.analysis.overview import merge_briefs, overview, shortened
from pyprof.report.analysis.roofline import achieved
from pyprof.report.render import page
from pyprof.report.render.page import figures, icicle, measured, sections
from pyprof.report.render.page.icicle import OPS
from pyprof.report.render.page.sections import KERNELS, full_names
from pyprof.report.render.page.timeline import strips

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from pyprof.inputs.source import Source
    from pyprof.report.analysis.overview import Brief
    from pyprof.report.analysis.roofline import Achieved
    from pyprof.report.analysis.source_lines import SourceLines
    from pyprof.report.render.page.timeline import Strips


@dataclass(frozen=True, slots=True)
class Content:
    """Sums over rows, and a drawing of some of them."""

    brief: Brief
    kernels: pa.Table
    """`totals.sums` by KERNELS."""
    full_names: Mapping[str, str]
    """Of kernels, by their short ones."""
    ops: pa.Table
    """`totals.sums` by OPS."""
    lines: SourceLines
    achieved: Achieved
    strips: Strips | None
    warnings: tuple[str, ...]
    """What the capture's reader warns of."""


def summarise_page(source: Source, chosen: str | None = None) -> Content:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table, brief = source.table, overview(source, chosen)
    return Content(
        shortened(source, brief),
        op_totals.sums(table, KERNELS, brief.rows),
        full_names(table),
        op_totals.sums(table, OPS, brief.rows),
        source_lines.source_lines(table, brief.rows),
        achieved(table, brief.rows),
        strips(source, brief),
        table.source.warnings,
    )


def merge_pages(a: Content, b: Content) -> Content:
    """Sum up two sets of captures from what was found of each."""
    return Content(
        merge_briefs(a.brief, b.brief),
        op_totals.merge_totals(a.kernels, b.kernels),
        {**b.full_names, **a.full_names},
        op_totals.merge_totals(a.ops, b.ops),
        source_lines.merge_line_times(a.lines, b.lines),
        a.achieved.plus(b.achieved),
        a.strips.plus(b.strips) if a.strips and b.strips else a.strips or b.strips,
        each_once(a.warnings, b.warnings),
    )


# The report's page as a whole: everything aggregated first, so that it stays small.


_MOST_POINTS = 400
_MOST_ROOFS = 4


def html(content: Content) -> str:
    """Make the page. Raises PyprofError where what draws it is not installed."""
    script, brief = figures.script(), content.brief
    lines = sections.line_table(content.lines)
    drawn = {**_timeline(content), **_modules(content), **_roofline(content)}
    return page.render(
        "report.html.j2",
        version=__version__,
        title=f"{brief.coverage.processor} profile",
        processor=brief.coverage.processor,
        sections=list(
            _contents(
                timed=drawn["strip"] is not None,
                counted=brief.counters is not None,
                lines=bool(lines.rows),
            )
        ),
        gpus=", ".join(name or "a GPU without a name" for name in brief.gpus),
        peaks=", ".join(brief.peaks),
        chosen=brief.chosen,
        warnings=[sections.without_folders(text) for text in content.warnings],
        cards=list(sections.cards(brief)),
        phases=sections.phases(brief),
        vias=sections.vias(brief),
        families=sections.families(brief),
        causes=sections.causes(brief),
        advice=sections.advice(brief),
        ops=sections.ops(brief),
        kernels=sections.kernels(content.kernels, content.full_names),
        lines=lines,
        measured=measured.section(brief),
        sort_colours=figures.SORTS,
        bokeh=page.own(script),
        **drawn,
    )


def _contents(*, timed: bool, counted: bool, lines: bool) -> Iterator[tuple[str, str]]:
    yield from (("summary", "Summary"), ("advice", "Advice"))
    if timed:
        yield "timeline", "Timeline"
    yield from (("families", "Families"), ("modules", "Modules"))
    if counted:
        yield "measured", "Measured"
    yield from (("roofline", "Roofline"), ("ops", "Ops"))
    yield "kernels", "Kernels"
    if lines:
        yield "lines", "Lines"


def _timeline(content: Content) -> Mapping[str, Any]:
    shown = content.strips.strip(content.brief.steps) if content.strips else None
    return {
        "strip": figures.strip(shown) if shown else None,
        "strip_left_out": shown.steps_left_out if shown else 0,
        "devices_left_out": content.strips.devices_left_out if content.strips else 0,
    }


def _modules(content: Content) -> Mapping[str, Any]:
    root = icicle.modules(content.brief.layers)
    title = "Modules" if root else "Ops and their kernels (the capture has no layers)"
    root = root or icicle.ops(content.ops)
    on = content.brief.coverage.processor
    boxes = icicle.boxes(root, f"all {on} time")
    return {"icicle": figures.icicle(boxes, max(root.total_ns, 1), on), "icicle_title": title}


def _roofline(content: Content) -> Mapping[str, Any]:
    points = roofline.points(content.achieved, _MOST_POINTS)
    roofs = roofline.roofs(content.achieved, _MOST_ROOFS)
    return {
        "roofline": figures.roofline(points, roofs) if points else None,
        "roofs": bool(roofs),
        "bound_colours": roofline.colours(points),
    }
