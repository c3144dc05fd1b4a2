"""How `pyprof report` works: the sums of a summary and of what only a page shows, and the answer.

A new fact of the page is a field of `ReportSums`, of `Report`, and a module here that finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.analysis.memory.peaks import highest_first
from pyprof.analysis.report.attributes import row_attributes
from pyprof.analysis.report.devices import device_steps
from pyprof.analysis.report.stream_lanes import clock, lanes
from pyprof.analysis.report.strips import strip_sums
from pyprof.analysis.summary import composition, op_totals, overview
from pyprof.analysis.summary.roofline_points import achieved, points, roofs
from pyprof.analysis.summary.source_lines import line_times, source_lines
from pyprof.analysis.whatif import summarise_whatif
from pyprof.answers import try_answer
from pyprof.answers.lines_answer import Lines
from pyprof.answers.memory_answer import rank_memory
from pyprof.answers.page.report_answer import HighestMemory, KernelTime, Report
from pyprof.inputs import trial_folder
from pyprof.inputs.memory_recordings import read_with_captures, recordings
from pyprof.records.merging import merge_unique, merged_by
from pyprof.records.records import distinct

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.analysis.report.strips import StripSums
    from pyprof.analysis.summary.overview import Overview, SummarySums
    from pyprof.analysis.summary.roofline_points import Achieved
    from pyprof.analysis.summary.source_lines import LineSums
    from pyprof.answers.page.report_answer import DeviceSteps, Lanes
    from pyprof.answers.try_answer import Try
    from pyprof.answers.whatif_answer import WhatIf
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table

_KERNEL_KEYS = ("kernel", "op", "tc")
_MAX_POINTS = 400
_HELD_BY, _MAX_HELD = ("category", "line", "layer"), 500


def _merge_names(a: Mapping[str, str], b: Mapping[str, str]) -> Mapping[str, str]:
    """Keep one full name of each kernel, the same in any order of captures."""
    return {name: min(names[name] for names in (a, b) if name in names) for name in {**a, **b}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSums:
    """What a report is made from, small enough to send; several captures make one."""

    summary: SummarySums
    attributes: pa.Table
    """As in `Report`."""
    kernels: pa.Table
    """`op_totals.sums` by `_KERNEL_KEYS`."""
    full_names: Mapping[str, str] = merged_by(_merge_names)
    """By the short name of a kernel."""
    lines: LineSums
    achieved: Achieved
    lanes: Lanes | None
    device_steps: DeviceSteps
    strips: StripSums | None
    memory: HighestMemory | None
    tried: Try | None = merged_by(lambda a, b: a or b)
    """The captures of one page are from one run."""
    whatif: WhatIf | None
    tools: tuple[str, ...] = merged_by(merge_unique)
    began_ns: tuple[int, ...] = merged_by(merge_unique)
    """When the recordings began, ns since 1970, as far as recorded."""


def summarise_report(
    source: Source, chosen: str | None = None, snapshot: str | None = None
) -> ReportSums:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names, with a memory snapshot.

    Raises click.BadParameter if `chosen` names no step.
    """
    view, table, capture = overview.overview(source, chosen), source.table, source.capture
    attributes = row_attributes(table, view.rows)
    beside = None if source.origin is None else trial_folder.answer_beside(Path(source.origin))
    return ReportSums(
        summary=overview.sum_up(source, view),
        attributes=attributes.chosen,
        kernels=op_totals.sums(table, _KERNEL_KEYS, view.rows),
        full_names=_full_names(table),
        lines=source_lines(table, view.rows),
        achieved=achieved(table, view.rows),
        lanes=lanes(table.records, view, attributes),
        device_steps=device_steps(table.records, view),
        strips=strip_sums(table.records, view),
        memory=_memory(source, view, snapshot),
        tried=None if beside is None else try_answer.from_json(beside),
        whatif=None if view.rows is not None else summarise_whatif(source, kernels_only=True),
        tools=() if capture is None else (f"{capture.tool} {capture.version or ''}".strip(),),
        began_ns=_began_ns(source),
    )


def _full_names(table: Table) -> dict[str, str]:
    full, short = (table.records.dictionary(name) for name in ("kLongName", "kShortName"))
    rows, _ = distinct(short.index)
    pairs = zip(short.index[rows].tolist(), full.index[rows].tolist(), strict=True)
    return {
        short.values[index].replace(" ", "_"): full.values[name]
        for index, name in sorted(pairs)
        if index >= 0 and name >= 0
    }


def _memory(source: Source, view: Overview, snapshot: str | None) -> HighestMemory | None:
    """Analyse what was recorded with a capture; None if nothing was."""
    shown = None if view.timeline is None else clock(view.timeline.devices)
    if snapshot is not None:
        recorded = recordings([snapshot], source.capture)
    else:
        recorded = read_with_captures([] if source.origin is None else [source.origin])
    devices = highest_first(recorded, source, None if shown is None else shown.window)
    if not devices:
        return None
    held = {by: groups[:_MAX_HELD] for by, groups in devices[0].by.items() if by in _HELD_BY}
    highest = replace(devices[0], by=held, beside_time=None)
    return HighestMemory(highest, shown, tuple(map(rank_memory, devices)))


_OF_AN_EPOCH_NS = 10**18
"""A clock from this value on counts from 1970; others count from boot, or from the recording."""


def _began_ns(source: Source) -> tuple[int, ...]:
    """When the recording began, or else its first row, ns since 1970; () if unknown."""
    capture, records = source.capture, source.table.records
    if "start" not in records.columns or not records.rows:
        return ()
    if capture is not None and capture.began_ns is not None:
        return (capture.began_ns,)
    first = int(records.numpy("start").min())
    return (first,) if first >= _OF_AN_EPOCH_NS else ()


def report(sums: ReportSums) -> Report:
    """Make the complete answer."""
    summary = composition.summary(sums.summary)
    return Report(
        summary=summary,
        attributes=sums.attributes,
        kernels=[
            KernelTime(
                kernel=kernel,
                full_name=sums.full_names.get(kernel or "", ""),
                op=op,
                tc=tc,
                calls=total.calls,
                time_ns=total.time_ns,
                share=total.share,
                flops_per_s=total.flops_per_s,
                bytes_per_s=total.bytes_per_s,
            )
            for total in op_totals.totals(sums.kernels)
            for kernel, op, tc in [total.key]
        ],
        lines=Lines(
            chosen=None,
            processor=sums.lines.processor,
            total_ns=sums.lines.total_ns,
            unknown_ns=sums.lines.unknown_ns,
            lines=line_times(sums.lines),
            advice=(),
        ),
        points=points(sums.achieved, _MAX_POINTS),
        roofs=roofs(sums.achieved),
        lanes=sums.lanes,
        device_steps=sums.device_steps,
        strips=None if sums.strips is None else sums.strips.shown(summary.steps),
        memory=sums.memory,
        tried=sums.tried,
        whatif=sums.whatif,
        tools=sums.tools,
        began_ns=min(sums.began_ns, default=None),
    )
