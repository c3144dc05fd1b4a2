"""What `pyprof summary` says of a capture, or of several, as data that is small enough to send."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pyprof import schema
from pyprof.analysis import advice, filtered
from pyprof.analysis.advice import Advice, Scope
from pyprof.analysis.summary import host_ops, layer_tree, op_totals
from pyprof.analysis.summary.counter_totals import CounterTotals, counter_totals, merge_counters
from pyprof.analysis.summary.op_totals import OpTotals, top_ops
from pyprof.analysis.summary.phases import of_rows, token_count
from pyprof.analysis.summary.utilization import (
    NO_STEPS,
    PhaseWork,
    Utilization,
    by_part,
    utilization,
)
from pyprof.analysis.time.steps import Steps, chosen_bounds, find_steps, merge_steps, without_rows
from pyprof.analysis.time.timeline import BLOCKING, Timeline, timeline
from pyprof.arrays import distinct_values
from pyprof.prof import step_rows
from pyprof.prof.coverage import Coverage, cost_coverage
from pyprof.prof.kernels import kernel_families
from pyprof.records.merging import merge_unique
from pyprof.records.records import totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.analysis.filtered import Filtered
    from pyprof.analysis.summary.layer_tree import Node
    from pyprof.analysis.time.timeline import DeviceTime
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.prof.where import Condition

_Number = TypeVar("_Number", int, float)

PARTS = ("prefill", "decode", "mixed", *step_rows.PARTS.values())


@dataclass(frozen=True, slots=True)
class Overview:
    """The rows and steps of a capture that are summed up, and what its GPUs did when."""

    rows: NDArray[np.bool_] | None
    """The rows of the chosen steps; None for all rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    steps: Steps
    timeline: Timeline | None
    """None if the records hold no times, or not all rows of these steps are looked at."""
    kept: Filtered | None
    """What `--where` left of the rows; then nothing is said of idle time, the host, MFU and MBU."""


def busy(work: Mapping[str, PhaseWork]) -> Mapping[str, int]:
    """Give the time of each part of the step, ns; not of those that took none."""
    return {name: part.busy_ns for name, part in work.items() if part.busy_ns}


def overview(
    source: Source, chosen: str | None = None, asked: Sequence[Condition] = ()
) -> Overview:
    """Choose all rows of a capture, the steps that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter if it names none.
    """
    steps = find_steps(source.table.records, source.capture)
    source.table.steps = of_rows(steps)
    picked = chosen_bounds(steps, chosen)
    rows, kept = filtered.choose(source, steps.rows(picked), asked)
    # Time between rows is idle only if none are left out.
    timed = None if kept else timeline(source.table.records, source.capture, rows)
    return Overview(rows, picked, steps, timed, kept)


def _span_ns(steps: Steps, chosen: tuple[int, int] | None) -> tuple[int, int] | None:
    """Give when the host worked on the chosen steps; None for all of its time."""
    if chosen is None:
        return None
    return int(steps.start_ns[chosen[0]]), int(steps.end_ns[chosen[1] - 1])


def per_step(
    table: Table, capture_steps: Steps, chosen: tuple[int, int] | None
) -> NDArray[np.float64] | None:
    """Give what each row adds to the mean time in a step, ns; None where no steps are known.

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
    return tuple(dict.fromkeys(values[place] for place in distinct_values(name.index).tolist()))


def _peaks(table: Table, rows: NDArray[np.bool_] | None) -> Mapping[str, float]:
    """Name the peaks and their values, with the time of the rows measured against each."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    number, classified = table.classified
    time = np.bincount(number[chosen], table.duration_ns[chosen].astype(float), len(classified))
    weight_by_label: dict[str, float] = {}
    for entry, ns in zip(classified, time.tolist(), strict=True):
        flops, memory = entry.flops_peak, entry.bandwidth_peak
        if flops is not None and ns:
            label = f"{_spelt(flops.value / 1e12, 4)} TFLOP/s ({flops.label})"
            weight_by_label[label] = weight_by_label.get(label, 0.0) + ns
        if memory is not None:
            weight_by_label[f"{_spelt(memory.value / 1e9, 5)} GB/s ({memory.label})"] = np.inf
    return weight_by_label


def _most_used(peak_ns: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(sorted(peak_ns, key=lambda label: (-peak_ns[label], label))[:MOST_PEAKS])


def _spelt(rate: float, digits: int) -> str:
    return f"{rate:,.{digits}g}" if rate < 10**digits else f"{rate:,.0f}"


MOST_PEAKS = 4
"""As many are named."""


def _by_text(
    source: Source, rows: NDArray[np.bool_] | None, column: str, texts: Sequence[str]
) -> Mapping[str, int]:
    """Sum GPU time by the texts of a column, in their order, and, last, of rows without one."""
    part = source.table.records.dictionary(column)
    ns = source.table.duration_ns
    chosen = np.ones(len(ns), bool) if rows is None else rows
    by_value = totals(part.index[chosen] + 1, ns[chosen], len(part.values) + 1).tolist()
    total = dict.fromkeys((*texts, ""), 0)
    for name, time in zip(["", *part.values], by_value, strict=True):
        if (name or "") in total:
            total[name or ""] += time
    return {name: value for name, value in total.items() if value}


def _families(table: Table, rows: NDArray[np.bool_] | None) -> Mapping[str, int]:
    family = kernel_families.families(table)
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    ns = totals(family.index[chosen], table.duration_ns[chosen], len(family.values))
    total: dict[str, int] = {}
    for name, time in zip(family.values, ns.tolist(), strict=True):
        total[name] = total.get(name, 0) + time
    return _longest_first(total)


def _longest_first(total: Mapping[str, int]) -> Mapping[str, int]:
    ordered = sorted(total.items(), key=lambda entry: (-entry[1], entry[0]))
    return {name: time for name, time in ordered if time}


@dataclass(frozen=True, slots=True)
class DeviceTotals:
    """How long one GPU, as one process used it, was at what; see `timeline.DeviceTime`. In ns."""

    rank: int | None
    device: int
    on_cpu: bool
    span_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    copy_ns: int
    exposed_copy_ns: int
    overlap_ns: int
    idle_ns: int
    windows: int
    paused_ns: int
    idle: Mapping[str, int]
    """By cause."""
    pid: int = field(default=-1, compare=False, repr=False)
    """Its process: a name, which no number here depends on."""

    @staticmethod
    def from_device(device: DeviceTime) -> DeviceTotals:
        """Measure the sets of time."""
        return DeviceTotals(
            device.rank,
            device.device,
            device.on_cpu,
            device.span_ns,
            device.busy_ns,
            device.compute.total,
            device.communication.total,
            device.exposed_communication_ns,
            device.copy.total,
            device.exposed_copy_ns,
            device.overlap_ns,
            device.idle_ns,
            device.windows,
            device.paused.total,
            {cause: time.total for cause, time in device.idle.items()},
            device.pid,
        )


@dataclass(frozen=True, slots=True)
class Times:
    """The GPUs of a capture, or of several; see `timeline.Timeline`."""

    devices: tuple[DeviceTotals, ...]
    api_known: bool
    blocking: bool
    left_out: int = 0

    @property
    def notes(self) -> Iterator[str]:
        """Say what distorts these times, in sentences."""
        if self.blocking:
            yield f"{BLOCKING}."
        if self.left_out:
            yield f"times are of {len(self.devices)} GPUs; {self.left_out} were left out."
        if not self.api_known and any(d.idle_ns and not d.on_cpu for d in self.devices):
            yield "this file lacks waits for the GPU; they count as launch or host."

    @staticmethod
    def from_timeline(timeline: Timeline) -> Times:
        """Measure all GPUs."""
        devices = tuple(DeviceTotals.from_device(device) for device in timeline.devices)
        return Times(devices, timeline.api_known, timeline.blocking, timeline.left_out)

    def plus(self, other: Times) -> Times:
        """Put the GPUs of another capture after these."""
        return Times(
            (*self.devices, *other.devices),
            self.api_known and other.api_known,
            self.blocking or other.blocking,
            self.left_out + other.left_out,
        )


@dataclass(frozen=True, slots=True)
class Brief:
    """A capture in brief, without rows. Times in ns."""

    gpus: tuple[str | None, ...]
    """Name of each GPU used, once; None for one that the capture does not name."""
    peak_ns: Mapping[str, float]
    """The peaks that rows are measured against, each with the time of these rows; for memory's,
    which come first, infinite."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    steps: Steps
    """Without rows."""
    times: Times | None
    """None if the records hold no times."""
    phase_work: Mapping[str, PhaseWork]
    """GPU time and FLOPs by part of the step; "" if nothing says. Time adds up to all rows'."""
    families: Mapping[str, int]
    """Summed GPU time by family of ops, the longest first."""
    utilization: Utilization
    coverage: Coverage
    vias: Mapping[str, int]
    """Summed GPU time by how the op was found; "" if none was. Adds up to all rows'."""
    ops: list[OpTotals]
    layers: Node
    advice: list[Advice]
    warnings: tuple[str, ...]
    row_count: int
    """Of all rows, which are numbered on behind those of other captures."""
    kept: Filtered | None = None
    """As in `Overview`."""
    host: pa.Table | None = None
    """What the host spent in each op, as `host_ops` gives it; None if no capture tells."""
    counters: CounterTotals | None = None
    """What counters measured; None if nothing was."""
    scope: Scope = field(default_factory=Scope)
    """What advice looked at."""
    token_count: int | None = None
    """How many tokens the averaged steps worked on; None where not all of them tell, or where
    ranks worked on different ones."""

    @property
    def peaks(self) -> tuple[str, ...]:
        """The peaks that most of the time is measured against, the longest time first."""
        return _most_used(self.peak_ns)

    @property
    def phases(self) -> Mapping[str, int]:
        """Summed GPU time by part of the step, ns; "" where nothing says."""
        return busy(self.phase_work)

    @property
    def averaged(self) -> tuple[int, int] | None:
        """The steps that times per step are means of: the first, and the one after the last."""
        return self.chosen or self.steps.averaged

    @property
    def step_count(self) -> int | None:
        """Over how many steps times per step go; None where no steps are known."""
        return self.averaged[1] - self.averaged[0] if self.averaged else None


def summarise_brief(
    source: Source, chosen: str | None = None, asked: Sequence[Condition] = ()
) -> Brief:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names, or rows `asked` for.

    Raises click.BadParameter where it names none.
    """
    return sum_up(source, overview(source, chosen, asked))


def sum_up(source: Source, view: Overview) -> Brief:
    """Sum up the rows of an overview."""
    table, rows, steps, picked = source.table, view.rows, view.steps, view.chosen
    in_step = per_step(table, steps, picked)
    loops = None if picked else steps  # who names steps means all that is in them
    review = advice.review(table, view.timeline, source.capture, rows, loops)
    return Brief(
        gpus=gpus(source),
        peak_ns=_peaks(table, rows),
        chosen=picked,
        steps=without_rows(steps),
        times=None if view.timeline is None else Times.from_timeline(view.timeline),
        phase_work=by_part(table, rows, PARTS),
        families=_families(table, rows),
        utilization=_NOT_OF_ALL if view.kept else utilization(table, steps, picked, view.timeline),
        coverage=cost_coverage(table, rows),
        vias=_by_text(source, rows, "via", schema.VIAS),
        ops=top_ops(table, rows, in_step),
        layers=layer_tree.tree(table, rows, in_step),
        advice=advice.without_rows(review.advice),
        warnings=(*table.source.warnings, *table.doubts),
        row_count=table.records.rows,
        kept=view.kept,
        host=None if view.kept else host_ops.host_ops(source, _span_ns(steps, picked)),
        counters=counter_totals(table, source.capture, rows, in_step),
        scope=review.scope,
        token_count=token_count(steps, picked or steps.averaged),
    )


_NOT_OF_ALL = Utilization(left_out="it is of all work; leave out --where")


def merge_briefs(a: Brief, b: Brief) -> Brief:
    """Sum up two sets of captures from what was found of each; in any order, it is the same.

    Only what is listed capture by capture (GPUs, warnings, numbers of rows) keeps their order.
    """
    joined = merge_steps(a.steps, b.steps)
    if joined.averaged or a.chosen or b.chosen:
        a, b = (
            one if one.steps.certainty == joined.certainty else _outside(one, joined)
            for one in (a, b)
        )
    return Brief(
        merge_unique(a.gpus, b.gpus),
        _sum(a.peak_ns, b.peak_ns),
        _both_chosen(a.chosen, b.chosen),
        joined,
        a.times.plus(b.times) if a.times and b.times else a.times or b.times,
        _work_added(a.phase_work, b.phase_work),
        _longest_first(_sum(a.families, b.families)),
        a.utilization.plus(b.utilization),
        a.coverage.plus(b.coverage),
        _in_order(_sum(a.vias, b.vias), schema.VIAS),
        op_totals.merge_op_totals(a.ops, b.ops),
        layer_tree.merge_trees(a.layers, b.layers),
        advice.merge_advice(a.advice, advice.renumbered(b.advice, a.row_count)),
        merge_unique(a.warnings, b.warnings),
        a.row_count + b.row_count,
        filtered.merge_filtered(a.kept, b.kept),
        host_ops.merge_host_ops(a.host, b.host),
        merge_counters(a.counters, b.counters, a.coverage.total_ns, b.coverage.total_ns),
        a.scope.plus(b.scope),
        a.token_count if a.token_count == b.token_count else None,
    )


def _sum(a: Mapping[str, _Number], b: Mapping[str, _Number]) -> dict[str, _Number]:
    return {**a, **{name: value + a[name] if name in a else value for name, value in b.items()}}


def _in_order(total: Mapping[str, int], names: Sequence[str]) -> Mapping[str, int]:
    return {name: total[name] for name in (*names, "") if name in total}


def _both_chosen(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """Join the steps chosen of two captures: of one that has more, `3:` names more."""
    if a is None or b is None:
        return a or b
    return min(a[0], b[0]), max(a[1], b[1])


def _work_added(a: Mapping[str, PhaseWork], b: Mapping[str, PhaseWork]) -> Mapping[str, PhaseWork]:
    both = {name: a[name].plus(b[name]) if name in b else a[name] for name in a}
    either = {**both, **{name: b[name] for name in b if name not in a}}
    return {name: either[name] for name in (*PARTS, "") if name in either}


def _outside(brief: Brief, others: Steps) -> Brief:
    """Let work be in no step: those of its capture are not the steps of the others."""
    ops = [replace(op, step_ns=0.0) for op in brief.ops]
    layers = layer_tree.outside_steps(brief.layers)
    counted = brief.utilization if others.guessed else Utilization()
    counted = replace(counted, steps=NO_STEPS)
    return replace(brief, chosen=None, ops=ops, layers=layers, utilization=counted)
