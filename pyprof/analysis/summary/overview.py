"""What `pyprof summary` looks at: rows and steps are chosen, and each capture is summed up."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.analysis import advice
from pyprof.analysis.library import library_of
from pyprof.analysis.summary import host_ops
from pyprof.analysis.summary.counter_totals import CounterTotals, counter_totals
from pyprof.analysis.summary.facts import fact_sums
from pyprof.analysis.summary.layer_tree import layer_sums
from pyprof.analysis.summary.op_totals import OpSums, op_sums
from pyprof.analysis.summary.phases import of_rows, token_count
from pyprof.analysis.summary.slowdowns import Slowdown, slowdowns
from pyprof.analysis.summary.step_use import UseSums, use_sums
from pyprof.analysis.summary.utilization import Utilization, Work, by_part, utilization
from pyprof.analysis.time.steps import Steps, chosen_bounds, find_steps, merge_steps, without_rows
from pyprof.analysis.time.timeline import BLOCKING, Timeline, runs_alone, timeline
from pyprof.answers.parts import ChosenRows
from pyprof.answers.summary_answer import DeviceUse
from pyprof.prof import step_rows, where
from pyprof.prof.coverage import Coverage, cost_coverage
from pyprof.prof.kernels import kernel_families
from pyprof.prof.processor import word
from pyprof.quantities import counted
from pyprof.records.merging import known_in_both, merge_unique, merged_by, same_or_none
from pyprof.records.records import time_by_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.analysis.advice import AdviceSums, Scope
    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.prof.where import Condition
    from pyprof.records.records import DictionaryColumn

PARTS = ("prefill", "decode", "mixed", *step_rows.PARTS.values())


@dataclass(frozen=True, slots=True)
class Overview:
    """The rows and steps of a capture that are summed up, and what its GPUs did when."""

    rows: Mask | None
    """The rows of the chosen steps; None for all rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    steps: Steps
    timeline: Timeline | None
    """None if the records hold no times, or not all rows of these steps are looked at."""
    kept: ChosenRows | None
    """The rows that `--where` left; idle time, the host, MFU and MBU are then unknown."""


def overview(
    source: Source, chosen: str | None = None, asked: Sequence[Condition] = ()
) -> Overview:
    """Choose all rows of a capture, the steps that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter if `chosen` names no step.
    """
    steps = find_steps(source.table.records, source.capture)
    source.table.steps = of_rows(steps)
    picked = chosen_bounds(len(steps), chosen)
    rows, kept = steps.rows(picked), None
    if asked:
        before = np.ones(source.table.records.rows, bool) if rows is None else rows
        rows, ns = before & np.asarray(where.rows(source.table, asked)), source.table.duration_ns
        kept = ChosenRows(
            where=" and ".join(map(str, asked)),
            row_count=int(rows.sum()),
            all_row_count=int(before.sum()),
            time_ns=int(ns[rows].sum()),
            all_time_ns=int(ns[before].sum()),
        )
    # Time between rows is idle only if none are left out.
    timed = None if kept else timeline(source.table.records, source.capture, rows)
    return Overview(rows, picked, steps, timed, kept)


def per_step(
    table: Table, capture_steps: Steps, chosen: tuple[int, int] | None
) -> NDArray[np.float64] | None:
    """Return what each row adds to the mean time of a step, ns; None without known steps.

    A step is one of those chosen, else of those after warm-up; what runs in no such step adds
    nothing.
    """
    averaged = chosen or capture_steps.averaged
    if averaged is None:
        return None
    inside = np.asarray(capture_steps.rows(averaged))
    return np.where(inside, table.duration_ns / (averaged[1] - averaged[0]), 0.0)


def gpus(source: Source) -> tuple[str | None, ...]:
    """Name the GPUs that the rows ran on, each once."""
    name = source.table.records.dictionary("gpu")
    values = [*name.values, None]
    return tuple(dict.fromkeys(values[index] for index in np.unique(name.index).tolist()))


def _peaks(table: Table, rows: Mask | None) -> Mapping[str, float]:
    """The peaks in words, with the time of the rows that are measured against each.

    Memory peaks have infinite time, so that they come first.
    """
    peaks = table.classified.map(lambda each: each.certain_peak)
    flops = peaks.map(
        lambda peak: peak and f"{_format(peak.value / 1e12, 4)} TFLOP/s ({peak.label})"
    )
    by_label = time_by_value(flops, table.duration_ns, rows)
    bandwidths = (each.bandwidth_peak for each in table.classified.values)
    return {label: time.ns for label, time in by_label.items() if label and time.ns} | {
        f"{_format(each.value / 1e9, 5)} GB/s ({each.label})": np.inf
        for each in bandwidths
        if each is not None
    }


def _format(rate: float, digits: int) -> str:
    return f"{rate:,.{digits}g}" if rate < 10**digits else f"{rate:,.0f}"


def _time_by_text(table: Table, texts: DictionaryColumn, rows: Mask | None) -> Mapping[str, int]:
    """Sum GPU time by the texts of a column; "" for rows without one."""
    by_text = time_by_value(texts.map(lambda text: text or None), table.duration_ns, rows)
    return {text or "": time.ns for text, time in by_text.items() if time.ns}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSums:
    """The GPUs of a capture, or of several; see `timeline.Timeline`."""

    devices: tuple[DeviceUse, ...]
    api_known: bool = merged_by(operator.and_)
    blocking: bool = merged_by(operator.or_)
    left_out: int
    slowdowns: tuple[Slowdown, ...]

    @property
    def notes(self) -> Iterator[str]:
        """What distorts these times, in sentences."""
        if self.blocking:
            yield f"{BLOCKING}."
        if self.left_out:
            count, left_out = len(self.devices), self.left_out
            yield f"times leave out {left_out:,} of {count + left_out:,} GPUs, which worked least."
        if not self.api_known and any(d.idle_ns and not d.on_cpu for d in self.devices):
            yield "this file lacks waits for the GPU; they count as launch or host."
        if self.slowdowns:
            worst = min(self.slowdowns, key=lambda one: (-one.ratio, one.device))
            others = len(self.slowdowns) - 1
            also = (
                f" Likewise on {counted(others, 'other GPU')}, each at its time." if others else ""
            )
            yield f"{worst}{also}"


def _device_sums(times: Timeline, slowdowns: tuple[Slowdown, ...]) -> DeviceSums:
    devices = tuple(
        DeviceUse(
            rank=device.rank,
            device=device.device if device.device >= 0 else None,
            processor=word(device.gpu),
            span_ns=device.span_ns,
            busy_ns=device.busy_ns,
            idle_ns=device.idle_ns,
            compute_ns=device.compute.total,
            communication_ns=device.communication.total,
            exposed_communication_ns=device.exposed_communication.total,
            copy_ns=device.copy.total,
            exposed_copy_ns=device.exposed_copy.total,
            overlap_ns=device.overlap_ns,
            idle_by_cause_ns={cause: time.total for cause, time in device.idle.items()},
            windows=device.windows,
            paused_ns=device.paused.total,
            pid=device.pid,
        )
        for device in times.devices
    )
    return DeviceSums(
        devices=devices,
        api_known=times.api_known,
        blocking=times.blocking,
        left_out=times.left_out,
        slowdowns=slowdowns,
    )


def _span(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """Span the chosen steps of two captures: `3:` names more of them in the longer capture."""
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSums:
    """The steps of captures whose steps were found in the same way, and notes about them."""

    steps: Steps = merged_by(merge_steps)
    """The steps, without rows."""
    chosen: tuple[int, int] | None = merged_by(_span)
    """The chosen steps: the first, and the one after the last."""
    utilization: Utilization
    use: UseSums | None
    """What the GPUs did in them; None if unknown."""
    op_steps: pa.Table | None
    """As `op_sums` returns it, and `layer_steps` as `layer_sums` does; None without steps."""
    layer_steps: pa.Table | None
    families: Mapping[str, int]
    """GPU time by family of ops in the steps that are averaged over."""

    @property
    def averaged(self) -> tuple[int, int] | None:
        """The steps that means are taken over: the first, and the one after the last."""
        return self.chosen or self.steps.averaged


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySums:
    """What a summary is made from: sums over the rows of a capture, or of several. Times in ns.

    Small enough to send; `merge_sums` adds those of two captures.
    """

    library: str | None = merged_by(same_or_none)
    """As `library_of` returns it."""
    gpus: tuple[str | None, ...] = merged_by(merge_unique)
    """Name of each GPU used, once; None for one that the capture does not name."""
    peaks: Mapping[str, float]
    """As `_peaks` returns them."""
    loops: Mapping[tuple[bool, int], LoopSums]
    """By `Steps.certainty`. If it differs between captures, as between a training and an
    evaluation beside it, only the surest steps count: all other work is in no step."""
    token_count: int | None = merged_by(same_or_none)
    """How many tokens the averaged steps worked on; None if not all steps state it, or if ranks
    differ.
    """
    devices: DeviceSums | None
    """None if the records hold no times, or the profiler ran each kernel alone."""
    parts: Mapping[str, Work[int]]
    """GPU time and FLOPs by part of the step; "" if unknown. Times add up to that of all rows."""
    families: Mapping[str, int]
    """GPU time by family of ops."""
    coverage: Coverage
    found_by: Mapping[str, int]
    """GPU time by how the op was found; "" if none was."""
    ops: OpSums
    layers: pa.Table
    """As `layer_sums` returns them."""
    host: pa.Table | None = merged_by(known_in_both)
    """As `host_ops` returns it; None if not all captures have ranges of ops."""
    counters: CounterTotals | None
    """None if nothing was measured."""
    facts: Mapping[str, Any]
    """As `fact_sums` returns them."""
    kept: ChosenRows | None
    """What `--where` left of the rows."""
    advice: AdviceSums
    scope: Scope
    """What advice looked at."""
    warnings: tuple[str, ...] = merged_by(merge_unique)


def summarise(
    source: Source, chosen: str | None = None, asked: Sequence[Condition] = ()
) -> SummarySums:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter if `chosen` names no step.
    """
    return sum_up(source, overview(source, chosen, asked))


def sum_up(source: Source, view: Overview) -> SummarySums:
    """Sum up the rows of an overview."""
    table, rows, steps, picked = source.table, view.rows, view.steps, view.chosen
    in_step, averaged = per_step(table, steps, picked), picked or steps.averaged
    families = kernel_families.families(table)
    loops = None if picked else steps  # in chosen steps, one-time work counts, too
    context = advice.RuleContext(table, view.timeline, source.capture, rows)
    use = _NOT_OF_ALL if view.kept else utilization(table, steps, picked, view.timeline)
    ops, op_steps = op_sums(table, rows, in_step)
    layers, layer_steps = layer_sums(table, rows, in_step)
    span_ns = picked and (int(steps.start_ns[picked[0]]), int(steps.end_ns[picked[1] - 1]))
    loop = LoopSums(
        steps=without_rows(steps),
        chosen=picked,
        utilization=use,
        use=use_sums(source, view.timeline, steps, picked),
        op_steps=op_steps,
        layer_steps=layer_steps,
        families=_time_by_text(table, families, steps.rows(averaged)) if averaged else {},
    )
    return SummarySums(
        library=library_of(table, source.capture),
        gpus=gpus(source),
        peaks=_peaks(table, rows),
        loops={steps.certainty: loop},
        token_count=token_count(steps, loop.averaged),
        devices=None
        if view.timeline is None or runs_alone(source.capture)
        else _device_sums(view.timeline, tuple(slowdowns(table, source.capture, rows))),
        parts=by_part(table, rows, PARTS),
        families=_time_by_text(table, families, rows),
        coverage=cost_coverage(table, rows),
        found_by=_time_by_text(table, table.records.dictionary("via"), rows),
        ops=ops,
        layers=layers,
        host=None if view.kept else host_ops.host_ops(source, span_ns),
        counters=counter_totals(table, source.capture, rows, in_step),
        facts=fact_sums(source, rows),
        kept=view.kept,
        advice=advice.summed(
            advice.advise(context, loops), table, picked and picked[1] - picked[0]
        ),
        scope=advice.find_scope(context),
        warnings=(*table.source.warnings, *table.doubts),
    )


_NOT_OF_ALL = Utilization(left_out="it is of all work; leave out --where")
