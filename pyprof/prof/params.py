"""Rows grouped by op and shape: how often, how long, how fast each call of a kind was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, ints, lists
from pyprof.prof.columns.column import FLOAT, INT, Column, measure
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records.records import DictionaryColumn, combinations, totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.prof.table import Table

KEYS = ("op", "dir", "params")
_MEASURES = (
    measure("calls", "Calls", INT, ""),
    measure("total", "Total(ns)", INT, "ns"),
    measure("share", "Share(%)", FLOAT, "%"),
    measure("mean", "Mean(ns)", FLOAT, "ns"),
    measure("tflops_min", "MinTFLOP/s", FLOAT, "TFLOP/s", "FLOP/s of the slowest call of a group."),
    measure("tflops", "TFLOP/s", FLOAT, "TFLOP/s"),
    measure("tflops_max", "MaxTFLOP/s", FLOAT, "TFLOP/s", "FLOP/s of the fastest."),
    measure("eff", "Eff(%)", FLOAT, "%"),
)
"""Those without a meaning have that of other tables, for readers of the schema."""
NAMES = (*KEYS, *(column.name for column in _MEASURES))
"""The columns, in their order; `tflops` is the median of the calls."""


def grouped(table: Table, rows: Mask | None = None) -> pa.Table:
    """Group rows, or those chosen, by op, direction and the types and sizes of its tensors.

    `calls` are op calls, each of any number of kernels; `rates` are the FLOP/s of these calls.
    """
    chosen = np.arange(table.records.rows) if rows is None else np.flatnonzero(rows)
    keys = [COLUMNS["op"].held(table), COLUMNS["dir"].held(table), shapes(table).dictionary_array()]
    first, group = combinations(*(codes[chosen] for codes in _codes(keys)))
    count = len(first)
    pairs, call = combinations(group, table.costs.call[chosen])
    group_of_call = group[pairs]
    duration = table.duration_ns[chosen]
    share = table.roofline.share[chosen]
    known = np.isfinite(share)
    weighed = np.where(known, share, 0.0) * duration
    taken = chosen[first]
    return pa.table(
        {
            **{
                name: key.take(pa.array(taken)).dictionary_decode()
                for name, key in zip(KEYS, keys, strict=True)
            },
            "calls": np.bincount(group_of_call, minlength=count),
            "total": totals(group, duration, count),
            "eff_ns": np.bincount(group, weighed, count),
            "eff_known_ns": totals(group, np.where(known, duration, 0), count),
            "rates": _rates(table, chosen, call, group_of_call, count),
        }
    )


def _codes(keys: Sequence[pa.DictionaryArray]) -> Iterator[IntArray]:
    return (ints(key.indices) for key in keys)


def _rates(
    table: Table, chosen: Int64Array, call: IntArray, group_of_call: IntArray, count: int
) -> pa.Array:
    """The FLOP/s of each group's calls, ascending; without calls of unknown or 0 FLOPs or time."""
    calls = len(group_of_call)
    flops, duration = table.costs.flops[chosen], table.duration_ns[chosen]
    unknown = np.bincount(call, flops == MISSING, calls) > 0
    done = np.bincount(call, np.where(flops == MISSING, 0, flops).astype(float), calls)
    took = np.bincount(call, duration.astype(float), calls)
    rate = np.divide(done * 1e9, took, out=np.full(calls, np.nan), where=took > 0)
    known_calls = ~unknown & (done > 0) & np.isfinite(rate)
    return _sort_rates(group_of_call[known_calls], rate[known_calls], count)


def _sort_rates(group: IntArray, rates: Floats, count: int) -> pa.Array:
    """List the rates of each group."""
    order = np.lexsort((rates, group))
    return lists(np.bincount(group, minlength=count), pa.array(rates[order]))


def shapes(table: Table) -> DictionaryColumn:
    """Format the types and sizes of each row's tensors; else what its cost was computed from."""
    sizes, dtypes = table.records.dictionary("sizes"), table.records.dictionary("dtypes")
    params = COLUMNS["params"].held(table)
    first, index = combinations(sizes.index, dtypes.index)
    formatted = [_format_shapes(sizes.at(row), dtypes.at(row)) for row in first.tolist()]
    known_rows = np.array([text is not None for text in formatted], bool)[index]
    own = params.dictionary.to_pylist()
    return DictionaryColumn(
        np.where(known_rows, len(own) + index, ints(params.indices)),
        [*own, *formatted],
    )


def _format_shapes(sizes: list[list[int]] | None, dtypes: list[str] | None) -> str | None:
    """Write `float16 [8,64] [64,64]`, the type before the first tensor and where it changes."""
    if not sizes:
        return None
    words: list[str] = []
    before = ""
    for index, size in enumerate(sizes):
        dtype = dtypes[index] if dtypes and index < len(dtypes) else ""
        words += [dtype] if dtype and dtype != before else []
        before = dtype or before
        words.append(f"[{','.join(map(str, size))}]")
    return " ".join(words)


def merge_groups(a: pa.Table, b: pa.Table) -> pa.Table:
    """Merge the groups of two sets of rows."""
    both = pa.concat_tables([a, b])
    keys = [both.column(name).combine_chunks().dictionary_encode() for name in KEYS]
    first, group = combinations(*_codes(keys))
    count = len(first)
    sums = {
        name: totals(group, both.column(name).to_numpy(), count)
        for name in ("calls", "total", "eff_known_ns")
    }
    rates = both.column("rates").combine_chunks()
    of_rate = np.repeat(group, np.asarray(rates.value_lengths()))
    return pa.table(
        {
            **{name: both.column(name).take(pa.array(first)) for name in KEYS},
            "calls": sums["calls"],
            "total": sums["total"],
            "eff_ns": np.bincount(group, both.column("eff_ns").to_numpy(), count),
            "eff_known_ns": sums["eff_known_ns"],
            "rates": _sort_rates(of_rate, np.asarray(rates.flatten()), count),
        }
    )


def measured(groups: pa.Table) -> tuple[list[Column], pa.Table]:
    """Return the columns and rows of a table of groups, longest first."""
    total = groups.column("total").to_numpy().astype(float)
    known = groups.column("eff_known_ns").to_numpy()
    rates = [np.asarray(part) / 1e12 for part in groups.column("rates").to_pylist()]
    eff = np.divide(
        100 * groups.column("eff_ns").to_numpy(), known, out=np.full(len(total), np.nan),
        where=known > 0,
    )  # fmt: skip

    def of_rates(choose: Callable[[Floats], Any]) -> pa.Array:
        return pa.array([choose(part) if len(part) else None for part in rates], pa.float64())

    data = pa.table(
        {
            **{name: groups.column(name) for name in KEYS},
            "calls": groups.column("calls"),
            "total": groups.column("total"),
            "share": 100 * total / max(total.sum(), 1.0),
            "mean": total / groups.column("calls").to_numpy(),
            "tflops_min": of_rates(np.min),
            "tflops": of_rates(np.median),
            "tflops_max": of_rates(np.max),
            "eff": pa.array(eff, mask=~np.isfinite(eff)),
        }
    )
    order = [("total", "descending"), *((name, "ascending") for name in KEYS)]
    return [*(COLUMNS[name] for name in KEYS), *measures()], data.sort_by(order)


def measures() -> list[Column]:
    """The columns of groups, without those that rows are grouped by."""
    return [*_MEASURES]
