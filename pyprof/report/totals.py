"""Rows totalled by a column: how many, how long, and what is known of their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.columns import COLUMNS
from pyprof.report.topops import with_helpers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.prof.table import Table


@dataclass(frozen=True, slots=True)
class Total:
    """One group of rows."""

    key: tuple[str | None, ...]
    """Its value of each column; None where the rows have none."""
    calls: int
    """Kernels, copies and so on."""
    time_ns: int
    share: float
    """Of the summed time of all rows, 0 to 1."""
    flops: int
    bytes: int
    flops_per_s: float | None
    """Over the rows whose FLOPs are known, and their helpers; None where none is, or none does
    arithmetic."""
    bytes_per_s: float | None


_SUMS = ("ns", "flops", "flops_ns", "bytes", "bytes_ns")


def totals(
    table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None = None
) -> list[Total]:
    """Total all rows, or those chosen, by some columns of text, the longest group first."""
    keys = {name: COLUMNS[name].values(table) for name in names}
    numbers = {"ns": table.duration_ns}
    for name, known in (("flops", table.costs.flops), ("bytes", table.costs.bytes)):
        numbers[name] = np.maximum(known, 0)
        told = ~np.isnan(with_helpers(table, np.where(known >= 0, known, np.nan)))
        numbers[f"{name}_ns"] = np.where(told, table.duration_ns, 0)
    data = pa.table({**keys, **{f"_{name}": pa.array(v) for name, v in numbers.items()}})
    if rows is not None:
        data = data.filter(pa.array(rows))
    sums = [(f"_{name}", "sum") for name in _SUMS]
    found = data.group_by(list(names)).aggregate([*sums, ("_ns", "count")])
    order = [("_ns_sum", "descending"), *((name, "ascending") for name in names)]
    whole = max(int(pc.sum(data.column("_ns")).as_py() or 0), 1)
    return [
        Total(
            key=tuple(row[name] for name in names),
            calls=row["_ns_count"],
            time_ns=row["_ns_sum"],
            share=row["_ns_sum"] / whole,
            flops=row["_flops_sum"],
            bytes=row["_bytes_sum"],
            flops_per_s=_rate(row["_flops_sum"], row["_flops_ns_sum"]),
            bytes_per_s=_rate(row["_bytes_sum"], row["_bytes_ns_sum"]),
        )
        for row in found.sort_by(order).to_pylist()
    ]


def _rate(amount: int, time_ns: int) -> float | None:
    return amount / time_ns * NS_PER_S if amount and time_ns else None
