"""What `pyprof summary` says, as data: made once, shown by the terminal and by pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.allocator import give_back
from pyprof.inputs import source
from pyprof.prof.coverage import Known, known
from pyprof.report import advice
from pyprof.report.advice import Advice, advise
from pyprof.report.analysis import layer_tree, op_totals
from pyprof.report.analysis.chosen_steps import bounds
from pyprof.report.analysis.op_totals import OpTotals, top_ops
from pyprof.report.analysis.steps import Steps, steps
from pyprof.report.analysis.steps import merge as merge_steps
from pyprof.report.analysis.timeline import Timeline, timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.inputs.engine import Engine
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Override, Table
    from pyprof.report.analysis.layer_tree import Node
    from pyprof.report.analysis.timeline import DeviceTime

_PHASES = ("fprop", "bprop", "optim", "comm", "copy")


@dataclass(frozen=True, slots=True)
class Overview:
    """A capture in brief. Times in ns."""

    gpus: tuple[str | None, ...]
    """Name of each GPU used, once; None for one that the capture does not name."""
    peaks: tuple[str, ...]
    """The peaks that rows are measured against, those of most time first."""
    rows: NDArray[np.bool_] | None
    """The rows of the chosen steps; None for all rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    steps: Steps
    timeline: Timeline | None
    """None where the records hold no times."""
    phases: Mapping[str, int]
    """Summed GPU time by part of the step; "" where nothing says. Adds up to all rows'."""
    known: Known
    vias: Mapping[str, int]
    """Summed GPU time by how the op was found; "" where none was. Adds up to all rows'."""
    ops: list[OpTotals]
    advice: list[Advice]


def overview(source: Source, chosen: str | None = None) -> Overview:
    """Analyse a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table = source.table
    found = steps(table.records, source.capture)
    picked = bounds(found, chosen)
    rows = found.rows(picked)
    timed = timeline(table.records, source.capture, rows)
    ops = top_ops(table, rows, per_step(table, found, picked))
    give_back()
    return Overview(
        gpus=gpus(source),
        peaks=_peaks(source.table, rows),
        rows=rows,
        chosen=picked,
        steps=found,
        timeline=timed,
        phases=_by_text(source, rows, "dir", _PHASES),
        known=known(table, rows),
        vias=_by_text(source, rows, "via", schema.VIAS),
        ops=ops,
        advice=advise(table, timed, source.capture, rows),
    )


def per_step(
    table: Table, found: Steps, chosen: tuple[int, int] | None
) -> NDArray[np.float64] | None:
    """Give what each row adds to the mean time in a step, ns; None where no steps are known.

    A step is one of those chosen, else of those after warm-up; what runs in no such step adds
    nothing.
    """
    averaged = chosen or found.steady
    if averaged is None:
        return None
    inside = np.asarray(found.rows(averaged))
    return np.where(inside, table.duration_ns / (averaged[1] - averaged[0]), 0.0)


def gpus(source: Source) -> tuple[str | None, ...]:
    """Name the GPUs that the rows ran on, each once."""
    name = source.table.records.coded("gpu")
    values = [*name.values, None]
    return tuple(dict.fromkeys(values[place] for place in np.unique(name.index).tolist()))


def _peaks(table: Table, rows: NDArray[np.bool_] | None) -> tuple[str, ...]:
    """Name the peaks and their values, those of most time first."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    number, judged = table.judged
    time = np.bincount(number[chosen], table.duration_ns[chosen].astype(float), len(judged))
    found: dict[str, float] = {}
    for place in np.argsort(-time, kind="stable").tolist():
        flops, memory = judged[place].flops_peak, judged[place].bandwidth_peak
        if flops is not None and time[place]:
            found[f"{_spelt(flops.value / 1e12, 4)} TFLOP/s ({flops.label})"] = time[place]
        if memory is not None:
            found[f"{_spelt(memory.value / 1e9, 5)} GB/s ({memory.label})"] = np.inf
    return tuple(sorted(found, key=lambda label: -found[label])[:MOST_PEAKS])


def _spelt(rate: float, digits: int) -> str:
    return f"{rate:,.{digits}g}" if rate < 10**digits else f"{rate:,.0f}"


MOST_PEAKS = 4
"""As many are named."""


def _by_text(
    source: Source, rows: NDArray[np.bool_] | None, column: str, texts: Sequence[str]
) -> Mapping[str, int]:
    """Sum GPU time by the texts of a column, in their order, and, last, of rows without one."""
    part = source.table.records.coded(column)
    ns = source.table.duration_ns
    chosen = np.ones(len(ns), bool) if rows is None else rows
    known = np.array([*(value or "" for value in part.values), ""])[part.index]
    total = {name: int(ns[chosen & (known == name)].sum()) for name in (*texts, "")}
    return {name: value for name, value in total.items() if value}


# What `pyprof summary` says of a capture, small enough to send; those of several make one.


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

    @staticmethod
    def of(device: DeviceTime) -> DeviceTotals:
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
        )


@dataclass(frozen=True, slots=True)
class Times:
    """The GPUs of a capture, or of several; see `timeline.Timeline`."""

    devices: tuple[DeviceTotals, ...]
    api_known: bool
    blocking: bool
    left_out: int = 0

    @staticmethod
    def of(timeline: Timeline) -> Times:
        """Measure all GPUs."""
        devices = tuple(DeviceTotals.of(device) for device in timeline.devices)
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
    """The same things as in `overview.Overview`, without rows."""

    gpus: tuple[str | None, ...]
    peaks: tuple[str, ...]
    chosen: tuple[int, int] | None
    steps: Steps
    """Without rows."""
    times: Times | None
    phases: Mapping[str, int]
    known: Known
    vias: Mapping[str, int]
    ops: list[OpTotals]
    layers: Node
    advice: list[Advice]
    warnings: tuple[str, ...]

    @property
    def averaged(self) -> tuple[int, int] | None:
        """The steps that times per step are means of: the first, and the one after the last."""
        return self.chosen or self.steps.steady

    @property
    def step_count(self) -> int | None:
        """Over how many steps times per step go; None where no steps are known."""
        return self.averaged[1] - self.averaged[0] if self.averaged else None


def brief(of: Source, chosen: str | None = None) -> Brief:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    return shortened(of, overview(of, chosen))


def shortened(of: Source, found: Overview) -> Brief:
    """Leave the rows out of an overview."""
    return Brief(
        found.gpus,
        found.peaks,
        found.chosen,
        replace(found.steps, of_row=found.steps.of_row[:0]),
        None if found.timeline is None else Times.of(found.timeline),
        found.phases,
        found.known,
        found.vias,
        found.ops,
        layer_tree.tree(of.table, found.rows, per_step(of.table, found.steps, found.chosen)),
        advice.without_rows(found.advice),
        (*of.table.source.warnings, *of.table.doubts),
    )


def of_all(
    sources: Sequence[str],
    chosen: str | None,
    override: Override,
    engine: Engine,
    begin: Callable[[str], object] = str,
) -> Brief:
    """Sum up one file, or all captures of a set. Raises as `brief` and `source.load` do."""
    work = partial(brief, chosen=chosen)
    return source.of_all(sources, work, merge, engine, override, begin)


def merge(a: Brief, b: Brief) -> Brief:
    """Sum up two sets of captures from what was found of each."""
    joined = merge_steps(a.steps, b.steps)
    a, b = (one if one.steps.kind == joined.kind else _outside(one) for one in (a, b))
    return Brief(
        source.distinct(a.gpus, b.gpus),
        source.distinct(a.peaks, b.peaks)[:MOST_PEAKS],
        a.chosen or b.chosen,
        joined,
        a.times.plus(b.times) if a.times and b.times else a.times or b.times,
        _sum(a.phases, b.phases),
        a.known.plus(b.known),
        _sum(a.vias, b.vias),
        op_totals.merge_op_totals(a.ops, b.ops),
        layer_tree.merge(a.layers, b.layers),
        advice.merge(a.advice, b.advice),
        source.distinct(a.warnings, b.warnings),
    )


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> Mapping[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in {**a, **b}}


def _outside(found: Brief) -> Brief:
    """Let work be in no step: those of its capture are not the steps of the others."""
    ops = [replace(op, step_ns=0.0) for op in found.ops]
    return replace(found, ops=ops, layers=layer_tree.outside_steps(found.layers))
