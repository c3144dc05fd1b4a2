"""The report's page as a whole: everything aggregated first, so that it stays small."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof import __version__
from pyprof.report import page
from pyprof.report.page import figures, icicle, roofline, sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.report.page.content import Content

_MOST_POINTS = 400
_MOST_ROOFS = 4


def html(found: Content) -> str:
    """Make the page. Raises PyprofError where what draws it is not installed."""
    script, brief = figures.script(), found.brief
    lines = sections.lines(found.lines)
    drawn = {**_timeline(found), **_modules(found), **_roofline(found)}
    return page.render(
        "report.html.j2",
        version=__version__,
        title=f"{brief.known.processor} profile",
        processor=brief.known.processor,
        sections=list(_contents(timed=drawn["strip"] is not None, lines=bool(lines.rows))),
        gpus=", ".join(name or "a GPU without a name" for name in brief.gpus),
        peaks=", ".join(brief.peaks),
        chosen=brief.chosen,
        warnings=[sections.without_folders(text) for text in found.warnings],
        cards=list(sections.cards(brief)),
        phases=sections.phases(brief),
        causes=sections.causes(brief),
        advice=sections.advice(brief),
        ops=sections.ops(brief),
        kernels=sections.kernels(found.kernels, found.full_names),
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


def _timeline(found: Content) -> Mapping[str, Any]:
    shown = found.strips.strip(found.brief.steps) if found.strips else None
    return {
        "strip": figures.strip(shown) if shown else None,
        "strip_left_out": shown.steps_left_out if shown else 0,
        "devices_left_out": found.strips.devices_left_out if found.strips else 0,
    }


def _modules(found: Content) -> Mapping[str, Any]:
    root = icicle.modules(found.brief.layers)
    title = "Modules" if root else "Ops and their kernels (the capture holds no layers)"
    root = root or icicle.ops(found.ops)
    on = found.brief.known.processor
    boxes = icicle.boxes(root, f"all {on} time")
    return {"icicle": figures.icicle(boxes, max(root.total_ns, 1), on), "icicle_title": title}


def _roofline(found: Content) -> Mapping[str, Any]:
    points = roofline.points(found.achieved, _MOST_POINTS)
    roofs = roofline.roofs(found.achieved, _MOST_ROOFS)
    return {
        "roofline": figures.roofline(points, roofs) if points else None,
        "roofs": bool(roofs),
        "bound_colours": roofline.colours(points),
    }
