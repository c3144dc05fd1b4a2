"""The page of a report: what each capture sends, and the page made of all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.analysis.summary.overview import overview, sum_up, summary
from pyprof.answers.remedies import around_each_step
from pyprof.quantities import duration
from pyprof.records.merging import merge_unique, merged_by
from pyprof.render import page
from pyprof.render.page import parts
from pyprof.render.page.cross_filter import FilterData, chosen_facts, row_facts
from pyprof.render.page.parts import Page, PartInput
from pyprof.render.page.tables import without_folders
from pyprof.render.text.summary_text import fact_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pyprof.analysis.summary.overview import SummarySums
    from pyprof.answers.summary_answer import StepTimes, Summary
    from pyprof.inputs.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a capture sends for the page: sums over rows, and what its parts show."""

    summary: SummarySums
    facts: pa.Table
    """What can be selected; see `cross_filter.KEYS`."""
    parts: Mapping[str, Any]
    """What each part of the page summed up, by its name."""
    tools: tuple[str, ...] = merged_by(merge_unique)
    """The profilers that recorded the captures."""
    began_ns: tuple[int, ...] = merged_by(merge_unique)
    """When the recordings began, ns since 1970, as far as recorded."""
    warnings: tuple[str, ...] = merged_by(merge_unique)
    """What the capture's reader warns of."""


class Origin(NamedTuple):
    """Where a page comes from, for its reader."""

    label: str = ""
    """Name of the file, or of what the files have in common."""
    command: str = ""
    """The command that made the page, without folders."""


def summarise_page(
    source: Source, chosen: str | None = None, snapshot: str | None = None
) -> Content:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names, with a memory snapshot.

    Raises click.BadParameter if `chosen` names no step.
    """
    view = overview(source, chosen)
    facts = row_facts(source.table, view.rows)
    capture = source.capture
    tools = () if capture is None else (f"{capture.tool} {capture.version or ''}".strip(),)
    return Content(
        summary=sum_up(source, view),
        facts=chosen_facts(facts),
        parts=parts.summarise(PartInput(source, view, facts, snapshot)),
        tools=tools,
        began_ns=_began_ns(source),
        warnings=source.table.source.warnings,
    )


_OF_AN_EPOCH_NS = 10**18
"""A clock from this value on counts from 1970; others count from boot, or from the recording."""


def _began_ns(source: Source) -> tuple[int, ...]:
    """When the recording began, or else its first row, ns since 1970; () if unknown."""
    capture, records = source.capture, source.table.records
    if "start" not in records.columns or not records.rows:
        return ()
    first = int(records.numpy("start").min())
    if capture is not None and capture.began_ns is not None:
        return (capture.began_ns,)
    return (first,) if first >= _OF_AN_EPOCH_NS else ()


def html(content: Content, origin: Origin = Origin(), sources: Path | None = None) -> str:  # noqa: B008 - immutable
    """Make the page, with the text of source lines if `sources`, their folder, is given."""
    answer, selectable = summary(content.summary), FilterData(content.facts)
    shown = [
        {"id": name, "title": part.TITLE, **context}
        for name, part in parts.parts().items()
        for context in [part.section(Page(answer, selectable, content.parts.get(name), sources))]
        if context is not None
    ]
    on = answer.processor
    return page.render(
        "report.html.j2",
        parts.templates(),
        title=f"{origin.label}: {on} profile" if origin.label else f"{on} profile",
        processor=on,
        parts=shown,
        about=list(_about(answer, content, origin)),
        warnings=[without_folders(text) for text in content.warnings],
        facts=selectable.data(),
    )


def _about(answer: Summary, content: Content, origin: Origin) -> Sequence[tuple[str, str]]:
    """What was captured, by which profiler, and with which command the page was made."""
    facts = {
        answer.processor: ", ".join(name or "a GPU without a name" for name in answer.gpus),
        "relative to": ", ".join(answer.peaks)
        or (
            "unknown peaks: --gpu takes the device's name, or its peaks"
            if set(answer.gpus) - {"cpu"}
            else ""
        ),
        "steps": _steps(answer.steps, around_each_step(answer.library)),
        "recorded": _date(content.began_ns),
        **{fact.label.lower(): f"{fact_value(fact)}: {fact.meaning}" for fact in answer.facts},
        "profiler": ", ".join(content.tools),
        "command": origin.command,
    }
    return [(name, text) for name, text in facts.items() if text]


def _date(began_ns: Sequence[int]) -> str:
    """Format when the first recording began; "" if that is unknown or out of range."""
    if not began_ns:
        return ""
    try:
        began = datetime.fromtimestamp(min(began_ns) // 10**9, timezone.utc)
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
