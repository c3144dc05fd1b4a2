"""The ops that take most GPU time, each with what it achieved: a line per op, direction and line.

Times are sums over rows: they add up to the summed GPU time, not to the span.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.columns import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.prof.table import Table

    Mask = NDArray[np.bool_]

_KEYS = ("op", "dir", "line", "unnamed")
"""What a group has in common; `unnamed` is the kernel of rows that no op names."""


@dataclass(frozen=True, slots=True)
class OpTotals:
    """One op in one direction, called on one line. None where not known."""

    op: str | None
    """None where nothing names it; then `kernel` does: rows of other kernels are apart."""
    dir: str | None
    line: str | None
    kernel: str
    """The one with most time."""
    calls: int
    kernels: int
    total_ns: int
    share: float
    """Of the summed GPU time, 0 to 1."""
    flops_per_s: float | None
    """Over the time of the rows whose FLOPs are known."""
    bytes_per_s: float | None
    efficiency: float | None
    """Share of the roofline, weighed by time, over the rows for which it is known."""
    bound: str | None
    """What limits most of the time: compute, memory or latency."""
    tc: str | None
    """Tensor Cores, for most of the time that could use them: 1, 0 or ?; None where none could."""


def top_ops(table: Table, rows: Mask | None = None, limit: int | None = None) -> list[OpTotals]:
    """Total the rows (all, or those chosen) by op, direction and source line, the longest first."""
    data = _columns(table)
    if rows is not None:
        data = data.filter(pa.array(rows))
    sums = [(name, "sum") for name in ("ns", "flops", "flops_ns", "bytes", "bytes_ns",
                                       "eff_ns", "eff_known_ns")]  # fmt: skip
    found = data.group_by(list(_KEYS)).aggregate(
        [*sums, ("call", "count_distinct"), ("ns", "count")]
    )
    found = found.sort_by([("ns_sum", "descending"), *((key, "ascending") for key in _KEYS)])
    largest = {name: _largest(data, name) for name in ("kernel", "bound", "tc")}
    whole = max(int(pc.sum(data.column("ns")).as_py() or 0), 1)
    return [_totals(row, largest, whole) for row in found.slice(0, limit).to_pylist()]


def _columns(table: Table) -> pa.Table:
    ns = table.duration_ns.astype(float)
    costs, share = table.costs, np.where(_kernel(table), table.roofline.share, np.nan)
    flops, moved = (np.where(known >= 0, known, np.nan) for known in (costs.flops, costs.bytes))
    values = {
        name: COLUMNS[name].values(table) for name in ("op", "dir", "line", "kernel", "bound", "tc")
    }
    values["unnamed"] = pc.if_else(pc.is_null(values["op"]), values["kernel"], None)
    values["bound"] = pc.if_else(pa.array(_kernel(table)), values["bound"], None)
    used = pc.and_(pa.array(_kernel(table)), pc.not_equal(values["tc"], "-"))
    values["tc"] = pc.if_else(used, values["tc"], None)
    measured = {
        "flops": flops, "flops_ns": np.where(np.isnan(flops), 0, ns),
        "bytes": moved, "bytes_ns": np.where(np.isnan(moved), 0, ns),
        "eff_ns": np.where(np.isnan(share), 0, share * ns),
        "eff_known_ns": np.where(np.isnan(share), 0, ns),
    }  # fmt: skip
    numbers = {name: pa.array(np.nan_to_num(value)) for name, value in measured.items()}
    return pa.table({**values, **numbers, "ns": pa.array(table.duration_ns),
                     "call": pa.array(costs.call)})  # fmt: skip


def _kernel(table: Table) -> Mask:
    """Find kernels: copies over the bus are not to be measured against the GPU's memory."""
    kind = table.records.coded("kind")
    kernels = {schema.KINDS[schema.KERNEL], schema.KINDS[schema.CPU]}
    return np.array([*(name in kernels for name in kind.values), True])[kind.index]


def _largest(data: pa.Table, name: str) -> dict[tuple[Any, ...], str]:
    """Of a column's values in each group, choose the one with most time; nulls do not count."""
    data = data.select([*_KEYS, name, "ns"])
    known = data.filter(pc.is_valid(data.column(name)))
    found = known.group_by([*_KEYS, name]).aggregate([("ns", "sum")])
    found = found.sort_by([("ns_sum", "ascending"), (name, "descending")])
    return {tuple(row[key] for key in _KEYS): row[name] for row in found.to_pylist()}


def _totals(
    row: dict[str, Any], largest: dict[str, dict[tuple[Any, ...], str]], whole: int
) -> OpTotals:
    key = tuple(row[name] for name in _KEYS)
    return OpTotals(
        op=row["op"],
        dir=row["dir"],
        line=row["line"],
        kernel=largest["kernel"][key],
        calls=row["call_count_distinct"],
        kernels=row["ns_count"],
        total_ns=row["ns_sum"],
        share=row["ns_sum"] / whole,
        flops_per_s=_over(row["flops_sum"] * NS_PER_S, row["flops_ns_sum"]),
        bytes_per_s=_over(row["bytes_sum"] * NS_PER_S, row["bytes_ns_sum"]),
        efficiency=_over(row["eff_ns_sum"], row["eff_known_ns_sum"]),
        bound=largest["bound"].get(key),
        tc=largest["tc"].get(key),
    )


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None
