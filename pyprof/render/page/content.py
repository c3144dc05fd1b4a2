"""The page of a report."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from pyprof.answers.remedies import around_each_step
from pyprof.quantities import duration
from pyprof.render import page
from pyprof.render.page import parts
from pyprof.render.page.cross_filter import FilterData
from pyprof.render.page.parts import Page
from pyprof.render.page.tables import without_folders
from pyprof.render.text.summary_text import fact_value, windows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyprof.answers.page.report_answer import Report
    from pyprof.answers.summary_answer import StepTimes


class Origin(NamedTuple):
    """Where a page comes from, for its reader."""

    label: str = ""
    """Name of the file, or of what the files have in common."""
    command: str = ""
    """The command that made the page, without folders."""


def html(report: Report, origin: Origin = Origin(), sources: Path | None = None) -> str:  # noqa: B008 - immutable
    """Make the page, with the text of source lines if `sources`, their folder, is given."""
    given = Page(report, FilterData(report.attributes), sources)
    shown = [
        {"id": name, "title": part.TITLE, **context}
        for name, part in parts.parts().items()
        for context in [part.section(given)]
        if context is not None
    ]
    on = report.summary.processor
    return page.render(
        "report.html.j2",
        parts.templates(),
        title=f"{origin.label}: {on} profile" if origin.label else f"{on} profile",
        processor=on,
        parts=shown,
        about=list(_describe_capture(report, origin)),
        warnings=[without_folders(text) for text in report.summary.warnings],
        facts=given.selectable.data(),
    )


def _describe_capture(report: Report, origin: Origin) -> Sequence[tuple[str, str]]:
    """What was captured, by which profiler, and with which command the page was made."""
    answer = report.summary
    facts = {
        answer.processor: ", ".join(name or "a GPU without a name" for name in answer.gpus),
        "relative to": ", ".join(answer.peaks)
        or (
            "unknown peaks: --gpu takes the device's name, or its peaks"
            if set(answer.gpus) - {"cpu"}
            else ""
        ),
        "steps": _steps(answer.steps, around_each_step(answer.library)),
        "windows": windows(answer),
        "recorded": _date(report.began_ns),
        **{fact.label.lower(): f"{fact_value(fact)}: {fact.meaning}" for fact in answer.facts},
        "profiler": ", ".join(report.tools),
        "command": origin.command,
    }
    return [(name, text) for name, text in facts.items() if text]


def _date(began_ns: int | None) -> str:
    """Format when the first recording began; "" if that is unknown or out of range."""
    if began_ns is None:
        return ""
    try:
        began = datetime.fromtimestamp(began_ns // 10**9, timezone.utc)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{began:%Y-%m-%d %H:%M} UTC"


def _steps(steps: StepTimes, ranges: str) -> str:
    if not steps.count:
        return f"none found; {ranges} shows them"
    if steps.are_chosen:
        return f"{steps.first} to {steps.last} of {steps.count:,}, from {steps.described_origin}"
    after = " after warm-up" if steps.warm_up_count else ""
    shown = steps.count > 1 and steps.averaged_count is not None
    median = f", median {duration(steps.median_ns)}{after}" if shown else ""
    return f"{steps.count:,} from {steps.described_origin}{median}"
