"""The rows of a capture, totalled by what they do rather than by the kernel that did it.

A library may choose another kernel for the same work; op, shapes, dtypes and layer stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import sum_if_known
from pyprof.inputs.source import each_once
from pyprof.prof.columns import COLUMNS
from pyprof.prof.group import add_up
from pyprof.report.analysis import steps
from pyprof.report.analysis.chosen_steps import bounds
from pyprof.report.analysis.counter_totals import CounterTotals, counter_totals
from pyprof.report.analysis.overview import gpus
from pyprof.report.analysis.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.inputs.source import Source
    from pyprof.prof.table import Table
    from pyprof.report.analysis.steps import Steps

Key = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Sum:
    """The rows of one key."""

    calls: int
    """Op calls."""
    rows: int
    """Kernels, copies and so on."""
    time_ns: int


def _op(table: Table) -> pa.Array:
    """Name the op with its direction; what no op called goes by its kernel."""
    op, part, kernel = (COLUMNS[name].values(table) for name in ("op", "dir", "kernel"))
    named = pc.coalesce(op, kernel)
    backward = pc.fill_null(pc.equal(part, "bprop"), False)  # noqa: FBT003 - Arrow's spelling
    return pc.if_else(backward, pc.binary_join_element_wise(named, "(backward)", " "), named)


def _shape(table: Table) -> pa.Array:
    return _of_lists(table, "sizes", _sizes)


def _dtype(table: Table) -> pa.Array:
    return _of_lists(table, "dtypes", _dtypes)


def _sizes(value: list[list[int]]) -> str:
    return " ".join("x".join(map(str, size)) for size in value)


def _dtypes(value: list[str]) -> str:
    return ",".join(dict.fromkeys(name for name in value if name))


def _of_lists(table: Table, name: str, spell: Callable[[Any], str]) -> pa.Array:
    column = table.records.coded(name)
    texts = [*(spell(value) or None if value else None for value in column.values), None]
    index = np.where(column.index < 0, len(texts) - 1, column.index)
    return pa.array(texts, pa.string()).take(pa.array(index))


def _column(name: str) -> Callable[[Table], pa.Array]:
    return COLUMNS[name].values


KEYS: dict[str, Callable[[Table], pa.Array]] = {
    "op": _op,
    "shape": _shape,
    "dtype": _dtype,
    "layer": _column("layer"),
    "line": _column("line"),
    "kernel": _column("kernel"),
}
"""What rows can be matched by."""

DEFAULT = ("op", "shape", "dtype", "layer")


_SUMS = {"calls": "sum", "rows": "sum", "ns": "sum"}


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """All rows by some keys, small enough to send."""

    sums: pa.Table
    """The keys, then `calls`, `rows` and `ns`."""
    known: frozenset[str]
    """The keys that a row has."""

    def plus(self, other: MatchedRows) -> MatchedRows:
        """Add the rows of another capture."""
        sums = pa.concat_tables([self.sums, other.sums])
        keys = [name for name in sums.column_names if name not in _SUMS]
        return MatchedRows(add_up(sums, keys, _SUMS), self.known | other.known)

    def by(self, names: Sequence[str]) -> dict[Key, Sum]:
        """Give the sums by some of the keys: no op call has two values of one that is left out."""
        return {
            tuple(row[name] for name in names): Sum(row["calls"], row["rows"], row["ns"])
            for row in add_up(self.sums, names, _SUMS).to_pylist()
            if row["rows"]  # by no key at all, no rows are a group, too
        }


def known_in_both(a: MatchedRows, b: MatchedRows, names: Sequence[str]) -> tuple[str, ...]:
    """Leave out the keys that one of the captures knows of no row: they would match nothing."""
    return tuple(name for name in names if name in a.known & b.known)


def matched(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None) -> MatchedRows:
    """Total all rows, or those chosen, by some keys."""
    keys = {name: KEYS[name](table) for name in names}
    data = pa.table({**keys, "ns": pa.array(table.duration_ns), "call": pa.array(table.costs.call)})
    if rows is not None:
        data = data.filter(pa.array(rows))
    sums = data.group_by(list(names)).aggregate(
        [("call", "count_distinct"), ("ns", "count"), ("ns", "sum")]
    )
    sums = sums.select([*names, "call_count_distinct", "ns_count", "ns_sum"])
    filled = frozenset(name for name, values in keys.items() if values.null_count < len(values))
    return MatchedRows(sums.rename_columns([*names, *_SUMS]), filled)


# One of the captures that are compared, small enough to send; several make one side.


_COSTS = ("flops", "bytes")


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over some rows. Times in ns."""

    matched: MatchedRows
    time_ns: int
    busy_ns: int | None
    """Added up over GPUs; None where the records hold no times. So is `idle_ns`."""
    idle_ns: int | None
    rows: int
    flops: float
    """As far as they are known. So are `bytes`."""
    bytes: float
    known: Mapping[str, int]
    """Of how many rows they are."""
    counters: CounterTotals | None = None
    """What was measured of them."""

    @staticmethod
    def from_rows(source: Source, keys: Sequence[str], rows: NDArray[np.bool_] | None) -> Sums:
        """Add up all rows, or those chosen."""
        table = source.table
        timed = timeline(table.records, source.capture, rows)
        devices = timed.devices if timed else ()
        summed = np.ones(table.records.rows, bool) if rows is None else rows
        costs = {name: getattr(table.costs, name)[summed] for name in _COSTS}
        return Sums(
            matched(table, keys, rows),
            int(table.duration_ns[summed].sum()),
            sum(device.busy_ns for device in devices) if devices else None,
            sum(device.idle_ns for device in devices) if devices else None,
            int(summed.sum()),
            **{name: float(cost[cost > 0].sum(dtype=float)) for name, cost in costs.items()},
            known={name: int((cost >= 0).sum()) for name, cost in costs.items()},
            counters=counter_totals(table, None, rows, None),
        )

    def plus(self, other: Sums) -> Sums:
        """Add the rows of another capture."""
        return Sums(
            self.matched.plus(other.matched),
            self.time_ns + other.time_ns,
            sum_if_known([self.busy_ns, other.busy_ns]),
            sum_if_known([self.idle_ns, other.idle_ns]),
            self.rows + other.rows,
            self.flops + other.flops,
            self.bytes + other.bytes,
            {name: self.known[name] + other.known[name] for name in _COSTS},
            self.counters.plus(other.counters)
            if self.counters and other.counters
            else self.counters or other.counters,
        )


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared, in total and by steps."""

    gpus: tuple[str | None, ...]
    keys: tuple[str, ...]
    """What rows are matched by, as far as both sides know it."""
    steps: Steps
    """Without rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    whole: Sums
    """Over all rows; of chosen steps, over theirs."""
    inside: Sums | None
    """Over the rows of the steps; None where no steps are known."""
    warnings: tuple[str, ...]

    @property
    def step_count(self) -> int:
        """Over how many steps the sums go; 0 where no steps are known."""
        return self.chosen[1] - self.chosen[0] if self.chosen else len(self.steps)


def summarise_side(source: Source, keys: tuple[str, ...], chosen: str | None = None) -> Side:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    loop_steps = steps.find_steps(source.table.records, source.capture)
    picked = bounds(loop_steps, chosen)
    stepped = (
        Sums.from_rows(source, keys, loop_steps.rows(picked or (0, len(loop_steps))))
        if len(loop_steps)
        else None
    )
    return Side(
        gpus(source),
        keys,
        replace(loop_steps, of_row=loop_steps.of_row[:0]),
        picked,
        stepped if picked and stepped else Sums.from_rows(source, keys, None),
        stepped,
        source.table.source.warnings,
    )


def merge_sides(a: Side, b: Side) -> Side:
    """Sum up two sets of captures from what was found of each.

    As in `merge_steps`, steps of another kind, an evaluation beside the training say, do not
    count.
    """
    alike = a.steps.kind == b.steps.kind
    return Side(
        each_once(a.gpus, b.gpus),
        a.keys,
        steps.merge_steps(a.steps, b.steps),
        a.chosen or b.chosen,
        a.whole.plus(b.whole),
        a.inside.plus(b.inside) if alike and a.inside and b.inside else a.inside or b.inside,
        each_once(a.warnings, b.warnings),
    )
