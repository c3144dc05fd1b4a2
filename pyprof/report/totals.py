"""Rows totalled by a column: how many, how long, and what is known of their work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.columns import COLUMNS
from pyprof.prof.group import add_up
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
    flops_per_s: float | None
    """Over the rows whose FLOPs are known, and their helpers; None where none is, or none does
    arithmetic."""
    bytes_per_s: float | None


_SUMS = dict.fromkeys(("calls", "ns", "flops", "flops_ns", "bytes", "bytes_ns"), "sum")


def sums(table: Table, names: Sequence[str], rows: NDArray[np.bool_] | None = None) -> pa.Table:
    """Add up all rows, or those chosen, by some columns of text.

    Gives a row for each group, small enough to send: its keys, and what `_SUMS` names.
    """
    keys = {name: COLUMNS[name].values(table) for name in names}
    numbers = {"calls": np.ones(len(table.duration_ns), np.int64), "ns": table.duration_ns}
    for name, known in (("flops", table.costs.flops), ("bytes", table.costs.bytes)):
        # As floats: the FLOPs of some thousand ranks are more than 63 bits hold.
        numbers[name] = np.maximum(known, 0).astype(float)
        told = ~np.isnan(with_helpers(table, np.where(known >= 0, known, np.nan)))
        numbers[f"{name}_ns"] = np.where(told, table.duration_ns, 0)
    data = pa.table({**keys, **{name: pa.array(values) for name, values in numbers.items()}})
    if rows is not None:
        data = data.filter(pa.array(rows))
    return add_up(data, names, _SUMS)


def merge(a: pa.Table, b: pa.Table) -> pa.Table:
    """Make the sums of two captures those of both."""
    return add_up(pa.concat_tables([a, b]), _keys(a), _SUMS)


def _keys(found: pa.Table) -> list[str]:
    return [name for name in found.column_names if name not in _SUMS]


def totals(found: pa.Table) -> list[Total]:
    """Give each group of some sums, the longest first."""
    names = _keys(found)
    order = [("ns", "descending"), *((name, "ascending") for name in names)]
    whole = max(int(pc.sum(found.column("ns")).as_py() or 0), 1)
    return [
        Total(
            key=tuple(row[name] for name in names),
            calls=row["calls"],
            time_ns=row["ns"],
            share=row["ns"] / whole,
            flops_per_s=_rate(row["flops"], row["flops_ns"]),
            bytes_per_s=_rate(row["bytes"], row["bytes_ns"]),
        )
        for row in found.sort_by(order).to_pylist()
    ]


def _rate(amount: float, time_ns: int) -> float | None:
    return amount / time_ns * NS_PER_S if amount and time_ns else None
