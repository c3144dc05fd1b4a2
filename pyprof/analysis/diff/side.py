"""One side of a comparison: rows of its captures, totalled by what they do, not by kernel.

A library may choose another kernel for the same work; op, shapes, dtypes and layer stay.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff.keys import KEYS
from pyprof.analysis.diff.samples import Samples, StepSamples, samples
from pyprof.analysis.summary.counter_totals import CounterTotals, counter_totals
from pyprof.analysis.summary.overview import gpus
from pyprof.analysis.time import steps
from pyprof.analysis.time.steps import merge_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.arrays import ratio_if_known
from pyprof.records import merging
from pyprof.records.merging import add_up, first, merge_sums, merge_unique, merged_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import Timeline
    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table

Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """The rows of one key."""

    calls: int
    """Op calls."""
    rows: int
    """Kernels, copies and so on."""
    time_ns: int


DEFAULT = ("op", "shape", "dtype", "layer")
_SUMS = {"calls": "sum", "rows": "sum", "ns": "sum"}
_COSTS = ("flops", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums over some rows, small enough to send. Times in ns."""

    by_key: pa.Table
    """The keys, then `calls`, `rows` and `ns`."""
    filled: frozenset[str] = merged_by(operator.or_)
    """The keys that at least one row of a capture has."""
    time_ns: int
    busy_ns: int | None = merged_by(merging.known_in_both)
    """Added up over GPUs; None if the records hold no times. So are `idle_ns` and `exposed_ns`,
    communication while nothing was computed."""
    idle_ns: int | None = merged_by(merging.known_in_both)
    exposed_ns: int | None = merged_by(merging.known_in_both)
    rows: int
    flops: float
    """As far as they are known. So are `bytes`."""
    bytes: float
    known: Mapping[str, int]
    """Number of rows whose `flops`, or `bytes`, are known."""
    counters: CounterTotals | None = None
    """What hardware counters measured for these rows."""

    @staticmethod
    def from_rows(
        table: Table, timed: Timeline | None, keys: Sequence[str], rows: NDArray[np.bool_] | None
    ) -> Sums:
        """Add up all rows, or those chosen; `timed` is their timeline."""
        devices = timed.devices if timed else ()
        summed = np.ones(table.records.rows, bool) if rows is None else rows
        costs = {name: getattr(table.costs, name)[summed] for name in _COSTS}
        columns = {name: KEYS[name](table) for name in keys}
        amounts = {
            "calls": table.named_call,
            "rows": np.ones(table.records.rows, np.int64),
            "ns": table.duration_ns,
        }
        chosen = pa.table({**columns, **amounts}).filter(pa.array(summed))
        return Sums(
            by_key=add_up(chosen, keys, {**_SUMS, "calls": "count_distinct"}),
            filled=frozenset(
                name for name, column in columns.items() if column.null_count < len(column)
            ),
            time_ns=int(table.duration_ns[summed].sum()),
            busy_ns=sum(device.busy_ns for device in devices) if devices else None,
            idle_ns=sum(device.idle_ns for device in devices) if devices else None,
            exposed_ns=sum(device.exposed_communication.total for device in devices)
            if devices
            else None,
            rows=int(summed.sum()),
            **{name: float(cost[cost > 0].sum(dtype=float)) for name, cost in costs.items()},
            known={name: int((cost >= 0).sum()) for name, cost in costs.items()},
            counters=counter_totals(table, None, rows, None),
        )

    def by(self, names: Sequence[str]) -> dict[Key, Sum]:
        """Return the sums by some of the keys.

        A call whose rows have several values of a key that is left out counts once for each.
        """
        return {
            tuple(row[name] for name in names): Sum(row["calls"], row["rows"], row["ns"])
            for row in add_up(self.by_key, names, _SUMS).to_pylist()
            if row["rows"]  # grouped by no keys, an empty table still has one group
        }


def _in_both(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """The steps counted in both; the first's if they share none."""
    both = max(a[0], b[0]), min(a[1], b[1])
    return both if both[0] < both[1] else a


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedSteps:
    """The steps over which numbers per step are means."""

    bounds: tuple[int, int] = merged_by(_in_both)
    """The first, and the one after the last: those chosen, else those after warm-up; for several
    captures, those that all of them count.
    """
    sums: Sums
    """Sums over their rows."""
    busy_step_ns: float | None = merged_by(merging.known_in_both)
    """Busy time of these rows, per step. So are `idle_step_ns` and `exposed_step_ns`."""
    idle_step_ns: float | None = merged_by(merging.known_in_both)
    exposed_step_ns: float | None = merged_by(merging.known_in_both)
    dram_step_bytes: float | None
    """What counters measured of these rows, per step, where they did. So is `energy_step_j`."""
    energy_step_j: float | None
    samples: StepSamples

    @property
    def count(self) -> int:
        """Number of steps."""
        return self.bounds[1] - self.bounds[0]

    def in_all_captures(self, samples: pa.Table) -> pa.Table:
        """Keep the samples of the steps that all captures count; number these from 0."""
        number = samples.column("step").to_numpy() - self.bounds[0]
        inside = (number >= 0) & (number < self.count)
        kept = samples if inside.all() else samples.filter(inside)
        return kept.set_column(kept.column_names.index("step"), "step", pa.array(number[inside]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison, in total and by step."""

    gpus: tuple[str | None, ...] = merged_by(merge_unique)
    keys: tuple[str, ...] = merged_by(first)
    """What rows are matched by, as far as both sides know it."""
    names_ops: bool = merged_by(operator.or_)
    """Whether any row has an op; without one, rows are named by their kernels."""
    steps: Steps = merged_by(merge_steps)
    """The steps, without rows."""
    chosen: tuple[int, int] | None = merged_by(first)
    """The chosen steps: the first, and the one after the last."""
    whole: Sums
    """Sums over all rows, or over those of chosen steps."""
    counted: CountedSteps | None
    """None if no steps are known."""
    samples: Samples
    clocks: tuple[tuple[str, float], ...] = merged_by(merge_unique)
    """The GPUs, and the highest SM clock of each, Hz, if the capture has it."""
    warnings: tuple[str, ...] = merged_by(merge_unique)

    @property
    def step_count(self) -> int:
        """Number of steps over which numbers per step are means; 0 if no steps are known."""
        return self.counted.count if self.counted else 0


def summarise_side(source: Source, keys: tuple[str, ...], chosen: str | None = None) -> Side:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter if it names none.
    """
    table, records = source.table, source.table.records
    loop_steps = steps.find_steps(records, source.capture)
    picked = steps.chosen_bounds(len(loop_steps), chosen)
    bounds = picked or loop_steps.steady  # `compare` checks how much of the time they hold
    rows = loop_steps.rows(bounds)
    summed = in_total = Sums.from_rows(table, timeline(records, source.capture, rows), keys, rows)
    if not (picked or rows is None or rows.all()):
        in_total = Sums.from_rows(table, timeline(records, source.capture), keys, None)
    taken, taken_by_step = samples(table, keys, loop_steps, bounds, loop_steps.rows(picked))
    counted = None
    if bounds is not None:
        count = bounds[1] - bounds[0]
        measured = summed.counters.total if summed.counters else None
        counted = CountedSteps(
            bounds=bounds,
            sums=summed,
            busy_step_ns=ratio_if_known(summed.busy_ns, count),
            idle_step_ns=ratio_if_known(summed.idle_ns, count),
            exposed_step_ns=ratio_if_known(summed.exposed_ns, count),
            dram_step_bytes=ratio_if_known(measured.dram_bytes if measured else None, count),
            energy_step_j=ratio_if_known(measured.energy_j if measured else None, count),
            samples=taken_by_step,
        )
    used = gpus(source)
    clocks = ((name, table.device_of(name).clock_hz) for name in used if name)
    return Side(
        gpus=used,
        keys=keys,
        names_ops=table.dictionary_array("op").null_count < records.rows,
        steps=steps.without_rows(loop_steps),
        chosen=picked,
        whole=in_total,
        counted=counted,
        samples=taken,
        clocks=tuple((name, clock_hz) for name, clock_hz in clocks if clock_hz),
        warnings=table.source.warnings,
    )


def merge_sides(a: Side, b: Side) -> Side:
    """Sum up two sets of captures from the sums of each.

    As in `merge_steps`, if the steps are of different kinds (say, of a training and an evaluation
    beside it), only the surer kind counts.
    """
    surest = max(a.steps.certainty, b.steps.certainty)
    a, b = (
        side if side.steps.certainty == surest else replace(side, counted=None) for side in (a, b)
    )
    return merge_sums(a, b)
