"""What `pyprof summary` says of a capture, small enough to send; those of several make one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyprof.report import advice, source, steps, topops, tree
from pyprof.report.overview import MOST_PEAKS, overview, per_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyprof.prof.known import Known
    from pyprof.prof.table import Override
    from pyprof.report.advice import Advice
    from pyprof.report.overview import Overview
    from pyprof.report.source import Source
    from pyprof.report.steps import Steps
    from pyprof.report.timeline import DeviceTime, Timeline
    from pyprof.report.topops import OpTotals
    from pyprof.report.tree import Node
    from pyprof.sets.engine import Engine


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
        found.ops,
        tree.tree(of.table, found.rows, per_step(of.table, found.steps, found.chosen)),
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
    joined = steps.merge(a.steps, b.steps)
    a, b = (one if one.steps.kind == joined.kind else _outside(one) for one in (a, b))
    return Brief(
        source.distinct(a.gpus, b.gpus),
        source.distinct(a.peaks, b.peaks)[:MOST_PEAKS],
        a.chosen or b.chosen,
        joined,
        a.times.plus(b.times) if a.times and b.times else a.times or b.times,
        {name: a.phases.get(name, 0) + b.phases.get(name, 0) for name in {**a.phases, **b.phases}},
        a.known.plus(b.known),
        topops.merge(a.ops, b.ops),
        tree.merge(a.layers, b.layers),
        advice.merge(a.advice, b.advice),
        source.distinct(a.warnings, b.warnings),
    )


def _outside(found: Brief) -> Brief:
    """Let work be in no step: those of its capture are not the steps of the others."""
    ops = [replace(op, step_ns=0.0) for op in found.ops]
    return replace(found, ops=ops, layers=tree.outside_steps(found.layers))
