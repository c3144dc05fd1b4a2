"""What the GPUs of a capture did in the steps that are averaged over, or in all of their time."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.op_totals import MAX_ROWS, LongestRows
from pyprof.analysis.time.idle import HOST
from pyprof.analysis.time.intervals import EMPTY, union_of
from pyprof.analysis.time.steps import bounds_on_gpu
from pyprof.analysis.time.timeline import runs_alone
from pyprof.answers.parts import StepUse
from pyprof.records.merging import merge_sums, merged_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.time.intervals import Intervals
    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import DeviceTime, Timeline
    from pyprof.answers.parts import Suggestion
    from pyprof.answers.summary_answer import DeviceUse
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
    exposed_of_gpu_ns: tuple[int, ...]
    """`exposed_communication_ns` of each GPU that communicates."""
    exposed_copy_ns: int
    idle_ns: Mapping[str, int]
    """By cause."""
    late: LongestRows
    """The rows that began after the longest waits, by `(cause,)`, for each GPU's main cause."""


def use_sums(
    source: Source, timeline: Timeline | None, steps: Steps, chosen: tuple[int, int] | None
) -> UseSums | None:
    """Sum up what each GPU did in the averaged steps; without steps, in all of its time.

    `timeline` covers the chosen steps alone, if some are `chosen`. None if idle time is unknown:
    the records hold no times, launches blocked, the profiler ran each kernel alone, or no GPU was
    recorded in these steps.
    """
    if timeline is None or timeline.blocking or not timeline.devices or runs_alone(source.capture):
        return None
    averaged = chosen or steps.averaged
    within = None
    if averaged is not None and not chosen:
        bounds = bounds_on_gpu(source.table.records, steps.of_row, len(steps))
        if bounds is not None:
            within = union_of(*(bounds[each : each + 1] for each in averaged))
        inside_ns = sum(_inside(device.span, within) for device in timeline.devices)
        if steps.guessed and inside_ns < _MAIN * sum(each.span_ns for each in timeline.devices):
            averaged = within = None
    count = averaged[1] - averaged[0] if averaged else 0
    # the time of all GPUs of a process: a step takes as long for one that ends early
    recorded: dict[int, Intervals] = {}
    for device in timeline.devices:
        recorded[device.pid] = recorded.get(device.pid, EMPTY) | device.span
    used = [
        _measure_use(device, recorded[device.pid], within, count, timeline)
        for device in timeline.devices
        if _inside(device.span, within)
    ]
    if not used:
        return None
    use: UseSums = reduce(merge_sums, used)
    return replace(use, late=LongestRows(use.late.rows, source.table.records.rows))


_MAIN = 0.5
"""Guessed steps that cover a smaller share of the time are not the program's main work."""


def _measure_use(
    device: DeviceTime,
    recorded: Intervals,
    within: Intervals | None,
    steps: int,
    timeline: Timeline,
) -> UseSums:
    """What one GPU did inside `within`, which is `steps` steps, and the rows that it waited for.

    What was `recorded` of its process before it began, or after it ended, is idle by the host.
    """
    idle_ns = {cause: _inside(time, within) for cause, time in device.idle.items()}
    cause = max(idle_ns, key=lambda name: idle_ns[name])
    waited = device.idle[cause] if within is None else device.idle[cause] & within
    ns = waited.length_within(device.gaps.start, device.gaps.end)
    longest = np.argsort(-ns, kind="stable")[:MAX_ROWS]
    longest = longest[ns[longest] > 0]
    idle_ns[HOST] += _inside(recorded - device.span, within)
    exposed_ns = _inside(device.exposed_communication, within)
    late = zip(ns[longest].tolist(), (device.gaps.row[longest] + 1).tolist(), strict=True)
    return UseSums(
        waits_known=timeline.api_known,
        gpus=1,
        steps=steps,
        span_ns=_inside(recorded, within),
        busy_ns=_inside(device.busy, within),
        compute_ns=_inside(device.compute, within),
        exposed_communication_ns=exposed_ns,
        exposed_of_gpu_ns=(exposed_ns,) if _inside(device.communication, within) else (),
        exposed_copy_ns=_inside(device.exposed_copy, within),
        idle_ns=idle_ns,
        late=LongestRows({(cause,): tuple(late)}, 0),  # all devices number the same rows
    )


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
    """Suggestions with gains as shares of what is judged: a mean step, else the whole capture.

    A larger gain belongs to a rank that takes longer than the mean, as a share of its time.
    """
    if use is None:
        return tuple(suggestions)
    judged = []
    for each in suggestions:
        step_ns = None if use.step_count is None else each.gain_step_ns
        gain_ns = each.gain_ns if use.step_count is None else step_ns
        share = each.gain_share
        if gain_ns is not None and gain_ns <= use.span_ns:
            share = gain_ns / use.span_ns
        judged.append(replace(each, gain_step_ns=step_ns, gain_share=share))
    return tuple(judged)


def waited_ns(sums: UseSums | None, devices: Sequence[DeviceUse]) -> int | None:
    """What the ranks wait for one of them, if that is most of their exposed communication.

    It is if one rank alone, for which the others wait, has less than half of the mean: several may
    be a group of their own. The excess over the least is what they could save.
    """
    ranks = {each.rank for each in devices}
    if sums is None or not sums.gpus or None in ranks or len(ranks) == 1:
        return None
    exposed_ns = sums.exposed_of_gpu_ns
    if sum(2 * ns < fmean(exposed_ns) for ns in exposed_ns) != 1:
        return None
    return min(max(exposed_ns) - min(exposed_ns), sums.span_ns // sums.gpus)
