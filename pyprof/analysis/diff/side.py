"""One side of a comparison: rows of its captures, totalled by what they do, not by kernel.

A library may choose another kernel for the same work; op, shapes, dtypes and layer stay.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff.keys import KEYS
from pyprof.analysis.diff.samples import Samples, samples
from pyprof.analysis.summary.counter_totals import CounterTotals, counter_totals
from pyprof.analysis.summary.overview import gpus
from pyprof.analysis.time import steps
from pyprof.analysis.time.timeline import timeline
from pyprof.prof.group import distinct_calls, groups
from pyprof.records import merging
from pyprof.records.merging import add_up, merge_sums, merge_unique, merged_by
from pyprof.records.records import totals

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


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Sums of all rows by some keys, small enough to send."""

    sums: pa.Table
    """The keys, then `calls`, `rows` and `ns`."""
    known: frozenset[str] = merged_by(operator.or_)
    """The keys that at least one row has."""

    def by(self, names: Sequence[str]) -> dict[Key, Sum]:
        """Return the sums by some of the keys.

        A call whose rows have several values of a key that is left out counts once for each.
        """
        return {
            tuple(row[name] for name in names): Sum(row["calls"], row["rows"], row["ns"])
            for row in add_up(self.sums, names, _SUMS).to_pylist()
            if row["rows"]  # grouped by no keys, an empty table still has one group
        }


def known_in_both(a: MatchedRows, b: MatchedRows, names: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that rows of both captures have: others would match nothing."""
    return tuple(name for name in names if name in a.known & b.known)


def matched(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None) -> MatchedRows:
    """Total all rows, or those chosen, by some keys."""
    keys = {name: KEYS[name](table) for name in names}
    grouped = groups(keys, rows)
    number, chosen, count = grouped.of_row, grouped.chosen, grouped.count
    sums = {
        "calls": distinct_calls(number, table.named_call[chosen], count),
        "rows": np.bincount(number, minlength=count),
        "ns": totals(number, table.duration_ns[chosen], count),
    }
    filled = frozenset(name for name, values in keys.items() if values.null_count < len(values))
    return MatchedRows(pa.table({**grouped.texts, **sums}), filled)


_COSTS = ("flops", "bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums over some rows. Times in ns."""

    matched: MatchedRows
    time_ns: int
    busy_ns: int | None = merged_by(merging.known_in_both)
    """Added up over GPUs; None if the records hold no times. So is `idle_ns`."""
    idle_ns: int | None = merged_by(merging.known_in_both)
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
        return Sums(
            matched=matched(table, keys, rows),
            time_ns=int(table.duration_ns[summed].sum()),
            busy_ns=sum(device.busy_ns for device in devices) if devices else None,
            idle_ns=sum(device.idle_ns for device in devices) if devices else None,
            rows=int(summed.sum()),
            **{name: float(cost[cost > 0].sum(dtype=float)) for name, cost in costs.items()},
            known={name: int((cost >= 0).sum()) for name, cost in costs.items()},
            counters=counter_totals(table, None, rows, None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison, in total and by step."""

    gpus: tuple[str | None, ...]
    keys: tuple[str, ...]
    """What rows are matched by, as far as both sides know it."""
    steps: Steps
    """The steps, without rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    whole: Sums
    """Sums over all rows, or over those of chosen steps."""
    inside: Sums | None
    """Sums over the rows of the counted steps; None if no steps are known."""
    counted: tuple[int, int] | None
    """The steps over which numbers per step are means: those chosen, else those after warm-up; for
    several captures, those that all of them count.
    """
    busy_step_ns: float | None
    """Busy time of `inside`, per step. So is `idle_step_ns`."""
    idle_step_ns: float | None
    samples: Samples
    clocks: tuple[tuple[str, float], ...]
    """The GPUs, and the highest SM clock of each, Hz, if the capture has it."""
    warnings: tuple[str, ...]

    @property
    def step_count(self) -> int:
        """Number of steps over which numbers per step are means; 0 if no steps are known."""
        return self.counted[1] - self.counted[0] if self.counted else 0


def summarise_side(source: Source, keys: tuple[str, ...], chosen: str | None = None) -> Side:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter if it names none.
    """
    table, records = source.table, source.table.records
    loop_steps = steps.find_steps(records, source.capture)
    picked = steps.chosen_bounds(loop_steps, chosen)
    counted = picked or loop_steps.steady  # `compare` checks how much of the time they hold
    rows = loop_steps.rows(counted)
    timed = timeline(records, source.capture, rows)
    summed = in_total = Sums.from_rows(table, timed, keys, rows)
    if not (picked or rows is None or rows.all()):
        in_total = Sums.from_rows(table, timeline(records, source.capture), keys, None)
    taken = samples(table, keys, loop_steps, counted, loop_steps.rows(picked))
    return Side(
        gpus=gpus(source),
        keys=keys,
        steps=steps.without_rows(loop_steps),
        chosen=picked,
        whole=in_total,
        inside=summed if counted else None,
        counted=counted,
        busy_step_ns=_per_step(summed.busy_ns, counted),
        idle_step_ns=_per_step(summed.idle_ns, counted),
        samples=taken,
        clocks=_clocks(source),
        warnings=source.table.source.warnings,
    )


def _per_step(time_ns: int | None, counted: tuple[int, int] | None) -> float | None:
    return None if time_ns is None or counted is None else time_ns / (counted[1] - counted[0])


def _clocks(source: Source) -> tuple[tuple[str, float], ...]:
    described = ((name, source.table.device_of(name).clock_hz) for name in gpus(source) if name)
    return tuple((name, clock_hz) for name, clock_hz in described if clock_hz)


def merge_sides(a: Side, b: Side) -> Side:
    """Sum up two sets of captures from the sums of each.

    As in `merge_steps`, if the steps are of different kinds (say, of a training and an evaluation
    beside it), only the surer kind counts.
    """
    alike = a.steps.certainty == b.steps.certainty
    main = max((a, b), key=lambda side: side.steps.certainty)
    stepped = [a, b] if alike else [main]
    return Side(
        gpus=merge_unique(a.gpus, b.gpus),
        keys=a.keys,
        steps=steps.merge_steps(a.steps, b.steps),
        chosen=a.chosen or b.chosen,
        whole=merge_sums(a.whole, b.whole),
        inside=merge_sums(a.inside, b.inside) if alike and a.inside and b.inside else main.inside,
        counted=_in_both(a.counted, b.counted) if alike else main.counted,
        busy_step_ns=reduce(merging.known_in_both, [each.busy_step_ns for each in stepped]),
        idle_step_ns=reduce(merging.known_in_both, [each.idle_step_ns for each in stepped]),
        samples=a.samples.plus(b.samples, [each.samples for each in stepped]),
        clocks=merge_unique(a.clocks, b.clocks),
        warnings=merge_unique(a.warnings, b.warnings),
    )


def _in_both(a: tuple[int, int] | None, b: tuple[int, int] | None) -> tuple[int, int] | None:
    """The steps counted in both; the first's if they share none."""
    if a is None or b is None:
        return a or b
    both = max(a[0], b[0]), min(a[1], b[1])
    return both if both[0] < both[1] else a
