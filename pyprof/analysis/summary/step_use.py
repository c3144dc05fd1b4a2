"""What the GPUs of a capture did in the steps that are averaged over, or in all of their time."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.op_totals import MAX_ROWS, LongestRows
from pyprof.analysis.time.idle import HOST
from pyprof.analysis.time.intervals import EMPTY, union_of
from pyprof.analysis.time.steps import bounds_on_gpu
from pyprof.answers.parts import StepUse
from pyprof.records.merging import merged_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import DeviceTime, Timeline
    from pyprof.answers.parts import Suggestion
    from pyprof.inputs.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class UseSums:
    """Times of GPUs in ns, summed over the GPUs and over the averaged steps."""

    waits_known: bool = merged_by(operator.and_)
    """Whether calls that wait for the GPU are known; else their time counts as launch or host."""
    gpus: int
    steps: int
    """Added up over GPUs; 0 without steps."""
    span_ns: int
    busy_ns: int
    compute_ns: int
    exposed_communication_ns: int
    exposed_copy_ns: int
    idle_ns: Mapping[str, int]
    """By cause."""
    late: LongestRows
    """The rows that began after the longest waits, by `(cause,)`, for each GPU's main cause."""


def use_sums(
    source: Source, timeline: Timeline | None, steps: Steps, chosen: tuple[int, int] | None
) -> UseSums | None:
    """Sum up what each GPU did in the averaged steps; without steps, in all of its time.

    `timeline` is of the chosen steps alone, if some are `chosen`. None if idle time is unknown:
    the records hold no times, launches blocked, or the profiler ran each kernel alone.
    """
    alone = source.capture is not None and source.capture.tool == "ncu"
    if timeline is None or timeline.blocking or alone or not timeline.devices:
        return None
    averaged = chosen or steps.averaged
    within = None
    if averaged is not None and not chosen:
        within = _time_of(source, steps, averaged)
        if steps.guessed and not _is_main(within, timeline):
            averaged = within = None
    recorded = _recorded(timeline)
    used = [
        one
        for device in timeline.devices
        if (one := _device(device, recorded[device.pid], within)) is not None
    ]
    count = averaged[1] - averaged[0] if averaged else 0
    return UseSums(
        waits_known=timeline.api_known,
        gpus=len(used),
        steps=count * len(used),
        span_ns=sum(one["span"] for one in used),
        busy_ns=sum(one["busy"] for one in used),
        compute_ns=sum(one["compute"] for one in used),
        exposed_communication_ns=sum(one["communication"] for one in used),
        exposed_copy_ns=sum(one["copy"] for one in used),
        idle_ns={
            cause: sum(_inside(device.idle[cause], within) for device in timeline.devices)
            + (sum(one["unused"] for one in used) if cause == HOST else 0)
            for cause in timeline.devices[0].idle
        },
        late=_late_rows(timeline, within, source.table.records.rows),
    )


def _time_of(source: Source, steps: Steps, averaged: tuple[int, int]) -> Intervals | None:
    """The time of these steps on the GPU; None if no row is in a step."""
    bounds = bounds_on_gpu(source.table.records, steps.of_row, len(steps))
    if bounds is None:
        return None
    first, last = (bounds[each : each + 1] for each in averaged)
    return union_of(first, last)


_MAIN = 0.5
"""Guessed steps that cover a smaller share of the time are not the program's main work."""


def _is_main(within: Intervals | None, timeline: Timeline) -> bool:
    span_ns = sum(device.span_ns for device in timeline.devices)
    inside_ns = sum(_inside(_at_work(device), within) for device in timeline.devices)
    return inside_ns >= _MAIN * span_ns


def _at_work(device: DeviceTime) -> Intervals:
    span = union_of(np.array([device.start_ns]), np.array([device.end_ns]))
    return span - device.paused


def _recorded(timeline: Timeline) -> Mapping[int, Intervals]:
    """The time of each process's GPUs: a step takes as long for one that ends early."""
    of_process: dict[int, Intervals] = {}
    for device in timeline.devices:
        of_process[device.pid] = of_process.get(device.pid, EMPTY) | _at_work(device)
    return of_process


def _device(
    device: DeviceTime, recorded: Intervals, within: Intervals | None
) -> Mapping[str, int] | None:
    """The times of one GPU inside `within`; None if none of its own span is."""
    own = _at_work(device)
    sets = {
        "span": recorded,
        "unused": recorded - own,
        "busy": device.busy,
        "compute": device.compute,
        "communication": device.communication - device.compute,
        "copy": device.copy - device.compute - device.communication,
    }
    times = {name: _inside(each, within) for name, each in sets.items()}
    return times if times["span"] > times["unused"] else None


def _late_rows(timeline: Timeline, within: Intervals | None, row_count: int) -> LongestRows:
    """The rows that ended the longest gaps of each GPU's main cause of idle time."""
    late = LongestRows({}, 0)
    for device in timeline.devices:
        idle = {cause: _inside(time, within) for cause, time in device.idle.items()}
        cause = max(idle, key=lambda name: idle[name])
        waited = device.idle[cause] if within is None else device.idle[cause] & within
        ns = waited.length_within(device.gaps.start, device.gaps.end)
        longest = np.argsort(-ns, kind="stable")[:MAX_ROWS]
        longest = longest[ns[longest] > 0]
        rows = zip(ns[longest].tolist(), (device.gaps.row[longest] + 1).tolist(), strict=True)
        late = late.merged(LongestRows({(cause,): tuple(rows)}, 0))
    return LongestRows(late.rows, row_count)


def _inside(time: Intervals, within: Intervals | None) -> int:
    return (time if within is None else time & within).total


def step_use(sums: UseSums | None) -> StepUse | None:
    """The means over steps and GPUs; None if nothing is known."""
    if sums is None or not sums.gpus:
        return None
    count = sums.steps or sums.gpus
    return StepUse(
        step_count=sums.steps // sums.gpus or None,
        gpu_count=sums.gpus,
        waits_known=sums.waits_known,
        span_ns=sums.span_ns / count,
        busy_ns=sums.busy_ns / count,
        compute_ns=sums.compute_ns / count,
        exposed_communication_ns=sums.exposed_communication_ns / count,
        exposed_copy_ns=sums.exposed_copy_ns / count,
        idle_by_cause_ns={cause: ns / count for cause, ns in sums.idle_ns.items() if ns},
        late_row_ids={
            cause: sums.late.row_ids((cause,)) for cause, ns in sums.idle_ns.items() if ns
        },
    )


def gains_of(use: StepUse | None, suggestions: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
    """Suggestions with gains as shares of what is judged: a mean step, else the whole capture."""
    if use is None:
        return tuple(suggestions)
    if use.step_count is not None:
        return tuple(
            each
            if each.gain_step_ns is None
            else replace(each, gain_share=min(1.0, each.gain_step_ns / use.span_ns))
            for each in suggestions
        )
    return tuple(
        replace(
            each,
            gain_step_ns=None,
            gain_share=None if each.gain_ns is None else min(1.0, each.gain_ns / use.span_ns),
        )
        for each in suggestions
    )
