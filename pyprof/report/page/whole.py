"""The report's page as a whole: everything aggregated first, so that it stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof import __version__
from pyprof.report import page
from pyprof.report.page import figures, icicle, roofline, sections
from pyprof.report.page.strip import strip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.report.overview import Overview
    from pyprof.report.source import Source

_MOST_POINTS = 400
_MOST_ROOFS = 4


def html(source: Source, found: Overview) -> str:
    """Make the page. Raises PyprofError where what draws it is not installed."""
    table = source.table
    script = figures.script()
    lines = sections.lines(table, found)
    drawn = {**_timeline(source, found), **_modules(source, found), **_roofline(source, found)}
    return page.render(
        "report.html.j2",
        version=__version__,
        title="GPU profile",
        sections=list(_contents(timed=drawn["strip"] is not None, lines=bool(lines.rows))),
        gpus=", ".join(name or "a GPU without a name" for name in found.gpus),
        peaks=", ".join(found.peaks),
        chosen=found.chosen,
        warnings=[sections.without_folders(text) for text in table.source.warnings],
        cards=list(sections.cards(table, found)),
        phases=sections.phases(found),
        causes=sections.causes(found),
        advice=sections.advice(found),
        ops=sections.ops(found),
        kernels=sections.kernels(table, found),
        lines=lines,
        sort_colours=figures.SORTS,
        bokeh=page.own(script),
        **drawn,
    )


def _contents(*, timed: bool, lines: bool) -> Iterator[tuple[str, str]]:
    yield from (("summary", "Summary"), ("advice", "Advice"))
    if timed:
        yield "timeline", "Timeline"
    yield from (("modules", "Modules"), ("roofline", "Roofline"), ("ops", "Ops"))
    yield "kernels", "Kernels"
    if lines:
        yield "lines", "Lines"


def _timeline(source: Source, found: Overview) -> Mapping[str, Any]:
    shown = strip(source, found)
    return {
        "strip": figures.strip(shown) if shown else None,
        "strip_left_out": shown.steps_left_out if shown else 0,
    }


def _modules(source: Source, found: Overview) -> Mapping[str, Any]:
    root = icicle.modules(source.table, found.rows)
    title = "Modules" if root else "Ops and their kernels (the capture holds no layers)"
    root = root or icicle.ops(source.table, found.rows)
    boxes = icicle.boxes(root, "all GPU time")
    return {"icicle": figures.icicle(boxes, max(root.total_ns, 1)), "icicle_title": title}


def _roofline(source: Source, found: Overview) -> Mapping[str, Any]:
    points = roofline.points(source.table, found.rows, _MOST_POINTS)
    roofs = roofline.roofs(source.table, found.rows, _MOST_ROOFS)
    return {
        "roofline": figures.roofline(points, roofs) if points else None,
        "roofs": bool(roofs),
        "bound_colours": roofline.colours(points),
    }
