"""Rows grouped by columns: count, time, share and work; several captures count as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof.columns.column import measure
from pyprof.prof.columns.standard import COLUMNS, FLOAT, INT, Column
from pyprof.prof.step_rows import StepRows, StepWork
from pyprof.records.merging import add_up, merge_sums

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows and of op calls; those of several captures add up."""

    rows: int = 0
    calls: int = 0

    def before(self, data: pa.Table) -> pa.Table:
        """Renumber the rows and op calls of `data` to continue after these."""
        for name, first in (("idx", self.rows), ("opid", self.calls)):
            if first and name in data.column_names:
                moved = pc.add(data.column(name), first)
                data = data.set_column(data.column_names.index(name), name, moved)
        return data


def counts(table: Table) -> Counts:
    """Count the rows and the op calls of a capture."""
    return Counts(table.records.rows, int(table.costs.call.max(initial=-1)) + 1)


def renumber(parts: Iterable[tuple[pa.Table, Counts]]) -> Iterator[pa.Table]:
    """Renumber each part after the parts before it."""
    so_far = Counts()
    for data, used in parts:
        yield so_far.before(data)
        so_far = merge_sums(so_far, used)


def _by_name(*columns: Column) -> Mapping[str, Column]:
    return {column.name: column for column in columns}


MEASURES = _by_name(
    measure("calls", "Calls", INT, "",
            "Kernels, copies and fills of the group; with `params`, op calls."),
    measure("total", "Total(ns)", INT, "ns", "Their time on the GPU, ns."),
    measure("mean", "Mean(ns)", FLOAT, "ns", "Mean of those that are timed, ns."),
    measure("min", "Min(ns)", INT, "ns", "The shortest, ns."),
    measure("max", "Max(ns)", INT, "ns", "The longest, ns."),
    measure("share", "Share(%)", FLOAT, "%", "Share of the summed time of all groups."),
    measure("flops", "FLOPs", INT, "FLOP", "Sum of those that are known."),
    measure("bytes", "Bytes", INT, "byte", "Sum of those that are known."),
    measure("dram", "DRAM(B)", INT, "byte",
            "Measured DRAM traffic, of the rows that counters cover."),
    measure("energy", "Energy(mJ)", FLOAT, "mJ",
            "Measured energy of the rows that counters cover, mJ."),
)  # fmt: skip
_OF_COUNTERS = ("dram", "energy")

BY_STEPS = ("step", "phase")
PER_STEP = _by_name(
    measure("wall", "Wall(ns)", INT, "ns",
            "Time of the steps on the slowest rank, with what it was idle, ns."),
    measure("tokens", "Tokens", INT, "",
            "Tokens that the steps work on, without padding, as a serving engine's ranges state."),
    measure("tokens_per_s", "Tokens/s", FLOAT, "", "These over the whole time of the steps."),
)  # fmt: skip
"""Measures of groups by step or phase."""
_IF_KNOWN = {*_OF_COUNTERS, *PER_STEP}
"""Measures that are shown only if a group has a value, or if asked for by name."""

HOST = _by_name(
    measure("cpu_calls", "CPUCalls", INT, "", "Calls of the op on the host."),
    measure("cpu_self", "CPUSelf(ns)", INT, "ns",
            "Host time in them, without ops called inside, ns."),
    measure("cpu_total", "CPUTotal(ns)", INT, "ns", "Host time in them, ns."),
    measure("cpu_mean", "CPUMean(ns)", FLOAT, "ns", "The same per call, ns."),
)  # fmt: skip
"""Measures of groups by op, from a capture: what the host spent in them."""

MEMORY = _by_name(
    measure("alloc", "Alloc(B)", INT, "byte", "Memory that it allocated in the whole recording."),
    measure("peak_share", "Peak(%)", FLOAT, "%", "Its share of what the device held at the peak."),
)
"""Measures of groups by op, line or layer, where memory was recorded with the capture."""
MEMORY_KEYS = ("op", "line", "layer")
"""Columns by which memory is grouped, too."""

_SOURCES = {
    "calls": "row_sum", "total": "duration_sum", "mean": "duration_mean", "min": "duration_min",
    "max": "duration_max", "share": "share", "flops": "flops_sum", "bytes": "bytes_sum",
    "dram": "dram_sum", "energy": "energy_sum",
    "wall": "wall_ns", "tokens": "tokens", "tokens_per_s": "tokens_per_s",
}  # fmt: skip
"""The aggregate of duration, flops, bytes and so on that each measure is."""

_SUMS = {"row_sum": "sum", "duration_count": "sum", "duration_sum": "sum", "duration_min": "min",
         "duration_max": "max", "flops_sum": "sum", "bytes_sum": "sum", "dram_sum": "sum",
         "energy_sum": "sum"}  # fmt: skip
"""The aggregates kept of a group, and how those of two are merged."""

_PER_PROCESS = {"tokens_min": "min", "tokens_max": "max", "wall_ns": "max"}
"""The same for steps: the fewest and most tokens of a process, and the time of the slowest."""


def keys(by: str) -> list[str]:
    """Name the columns of groups that hold what rows are grouped by: `key`, then further ones."""
    return ["key", *by.split(",")[1:]]


def group(table: Table, by: str, chosen: Mask | None = None) -> pa.Table:
    """Group rows by one column or several (`op,line`): `keys(by)`, then counts, sums and extremes.

    Groups are in no particular order. Rows with an empty column form one group. Unknown times and
    costs add nothing; a group without known ones has null.
    """
    rows = pa.table(
        {
            **{
                key: COLUMNS[name].values(table)
                for key, name in zip(keys(by), by.split(","), strict=True)
            },
            "row": np.ones(table.records.rows, np.int64),
            "duration": table.records.arrow("kDuration"),
            "flops": COLUMNS["flops"].values(table),
            "bytes": COLUMNS["bytes"].values(table),
            **{name: COLUMNS[name].values(table) for name in _OF_COUNTERS},
        }
    )
    rows = rows if chosen is None else rows.filter(pa.array(chosen))
    measures = [("duration", name) for name in ("count", "sum", "min", "max")]
    sums = rows.group_by(keys(by), use_threads=False).aggregate(
        [("row", "sum"), *measures, *((name, "sum") for name in ("flops", "bytes", *_OF_COUNTERS))]
    )
    sums = sums.select([*keys(by), *_SUMS])
    if by in BY_STEPS:
        # the tokens that the steps state, and how long they took
        steps = table.steps or StepRows(np.zeros(0, np.int64))
        by_key = steps.by_phase() if by == "phase" else steps.by_step()
        works = [by_key.get(value, StepWork()) for value in sums.column("key").to_pylist()]
        tokens, took = [work.tokens for work in works], [work.duration_ns for work in works]
        for name, values in zip(_PER_PROCESS, (tokens, tokens, took), strict=True):
            sums = sums.append_column(name, pa.array(values, pa.int64()))
    return sums


def merge_groups(a: pa.Table, b: pa.Table) -> pa.Table:
    """Merge the groups of two sets of rows."""
    both = pa.concat_tables([a, b])
    summed = {
        name: how for name, how in (_SUMS | _PER_PROCESS).items() if name in both.column_names
    }
    return add_up(both, [name for name in both.column_names if name not in summed], summed)


def add_up_rows(
    keys: Mapping[str, pa.DictionaryArray],
    numbers: Iterable[tuple[str, Int64Array | Floats]],
    rows: Mask | None = None,
) -> pa.Table:
    """Add up numbers of all rows, or those chosen, by text keys: integers exactly."""
    values = dict(numbers)
    table = pa.table({**keys, **values})
    table = table if rows is None else table.filter(pa.array(rows))
    return add_up(table, [*keys], dict.fromkeys(values, "sum"))


def measured(
    groups: pa.Table,
    by: str,
    host: pa.Table | None = None,
    named: Collection[str] = (),
) -> tuple[list[Column], pa.Table]:
    """Return columns and rows of a table of groups, longest first; `host` adds host time by op.

    `calls` counts kernels; `share` is of the summed GPU time. Measures that are `named` are
    included even if no group has a value.
    """
    groups = groups if host is None else with_host(groups, host)
    total = groups.column("duration_sum").cast(pa.float64())
    total_ns = pc.sum(groups.column("duration_sum")).as_py() or np.nan
    share = pc.multiply(pc.divide(total, float(total_ns)), 100.0)
    count = groups.column("duration_count")
    timed = pc.if_else(pc.equal(count, 0), None, count).cast(pa.float64())
    mean = pc.divide(total, timed)
    shown = groups.append_column("share", share).append_column("duration_mean", mean)
    shown = _with_rates(shown) if by in BY_STEPS else shown
    wanted = {
        name: column
        for name, column in {**MEASURES, **(PER_STEP if by in BY_STEPS else {})}.items()
        if name not in _IF_KNOWN
        or name in named
        or shown.column(_SOURCES[name]).null_count < shown.num_rows
    }
    names = by.split(",")
    columns = [*(COLUMNS[name] for name in names), *wanted.values()]
    sources = {
        **dict(zip(names, keys(by), strict=True)),
        **{name: _SOURCES[name] for name in wanted},
    }
    order = [("duration_sum", "descending"), *((key, "ascending") for key in keys(by))]
    if host is not None:
        columns += HOST.values()
        sources |= {name: name for name in HOST}
        order.insert(1, ("cpu_total", "descending"))
    shown = shown.sort_by(order)
    return columns, pa.table({name: shown.column(source) for name, source in sources.items()})


def _with_rates(groups: pa.Table) -> pa.Table:
    """Add the tokens of steps, null where processes differ, and tokens over the step's time."""
    least, most = groups.column("tokens_min"), groups.column("tokens_max")
    tokens = pc.if_else(pc.equal(least, most), most, None)
    took = groups.column("wall_ns")
    timed = pc.if_else(pc.greater(took, 0), took, None).cast(pa.float64())
    rate = pc.divide(pc.multiply(tokens.cast(pa.float64()), 1e9), timed)
    return groups.append_column("tokens", tokens).append_column("tokens_per_s", rate)


def with_host(groups: pa.Table, host: pa.Table) -> pa.Table:
    """Add to groups by op what the host spent in each; ops without rows become groups, too.

    An op that launched nothing took no GPU time. If an op without rows launched work, the time
    counts for the op that the user called, to which the rows belong: how much of it is the inner
    op's is unknown.
    """
    both = groups.join(host, keys="key", right_keys="op", join_type="full outer", use_threads=False)
    no_rows = pc.is_null(both.column("row_sum"))
    idle = pc.and_kleene(no_rows, pc.equal(both.column("launches"), 0))
    filled = {
        "row_sum": pc.fill_null(both.column("row_sum"), 0),
        "duration_sum": pc.if_else(idle, 0, both.column("duration_sum")),
        "duration_count": pc.fill_null(both.column("duration_count"), 0),
    }
    for name, values in filled.items():
        both = both.set_column(both.column_names.index(name), name, values)
    calls = pc.if_else(pc.equal(both.column("cpu_calls"), 0), None, both.column("cpu_calls"))
    mean = pc.divide(both.column("cpu_total").cast(pa.float64()), calls.cast(pa.float64()))
    return both.append_column("cpu_mean", mean)


def with_memory(
    columns: list[Column],
    groups: pa.Table,
    allocated: Sequence[int | None],
    share: Sequence[float | None],
) -> tuple[list[Column], pa.Table]:
    """Add to each group what it allocated, in bytes, and its share of the peak, in %."""
    values = {"alloc": pa.array(allocated, pa.int64()), "peak_share": pa.array(share, pa.float64())}
    for name, numbers in values.items():
        groups = groups.append_column(name, numbers)
    return [*columns, *MEMORY.values()], groups


def measures() -> list[Column]:
    """The columns of groups, without the one that rows are grouped by."""
    return [*MEASURES.values(), *PER_STEP.values(), *HOST.values(), *MEMORY.values()]
