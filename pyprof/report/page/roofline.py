"""Points and roofs of the roofline: ops by kernel, where both costs are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof.columns import COLUMNS
from pyprof.report.bounds import BOUNDS, UNKNOWN
from pyprof.report.text import duration, number, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

    Mask = NDArray[np.bool_]

_KEYS = ("op", "dir", "kernel", "bound")


@dataclass(frozen=True, slots=True)
class Point:
    """One op by one kernel."""

    name: str
    kernel: str
    bound: str | None
    intensity: float
    """FLOP a byte."""
    flops_per_s: float
    share: float
    """Of the summed GPU time, 0 to 1."""
    time: str
    rate: str


@dataclass(frozen=True, slots=True)
class Roof:
    """A peak of arithmetic over one of bandwidth."""

    flops_per_s: float
    bytes_per_s: float
    label: str

    @property
    def ridge(self) -> float:
        """The intensity at which both limit alike, FLOP a byte."""
        return self.flops_per_s / self.bytes_per_s


def points(table: Table, rows: Mask | None, limit: int) -> list[Point]:
    """Total rows that do arithmetic on memory by op and kernel, the longest first."""
    costs = table.costs
    chosen = (costs.flops > 0) & (costs.bytes > 0) & (table.duration_ns > 0)
    if rows is not None:
        chosen &= rows
    whole = max(int(table.duration_ns.sum() if rows is None else table.duration_ns[rows].sum()), 1)
    data = pa.table(
        {
            **{name: COLUMNS[name].values(table) for name in _KEYS},
            "ns": pa.array(table.duration_ns),
            "flops": pa.array(costs.flops.astype(float)),
            "bytes": pa.array(costs.bytes.astype(float)),
        }
    ).filter(pa.array(chosen))
    sums = [(name, "sum") for name in ("ns", "flops", "bytes")]
    found = data.group_by(list(_KEYS)).aggregate(sums).sort_by([("ns_sum", "descending")])
    return [_point(row, whole) for row in found.slice(0, limit).to_pylist()]


def colours(found: Sequence[Point]) -> dict[str, str]:
    """Give the colours of what bounds these points."""
    used = {point.bound or UNKNOWN for point in found}
    return {bound: colour for bound, colour in BOUNDS.items() if bound in used}


def _point(row: dict[str, Any], whole: int) -> Point:
    flops_per_s = row["flops_sum"] / row["ns_sum"] * NS_PER_S
    bytes_per_s = row["bytes_sum"] / row["ns_sum"] * NS_PER_S
    share = row["ns_sum"] / whole
    backward = " (backward)" if row["dir"] == "bprop" else ""
    return Point(
        name=f"{row['op'] or '-'}{backward}",
        kernel=row["kernel"],
        bound=row["bound"],
        intensity=row["flops_sum"] / row["bytes_sum"],
        flops_per_s=flops_per_s,
        share=share,
        time=f"{duration(row['ns_sum'])}, {percent(share)} %",
        rate=f"{number(flops_per_s / 1e12)} TFLOP/s, {number(bytes_per_s / 1e9)} GB/s",
    )


def roofs(table: Table, rows: Mask | None, limit: int) -> list[Roof]:
    """Give the peaks that the rows are measured against, those of most time first."""
    index, judged = table.judged
    time = table.duration_ns.astype(float) * (table.costs.flops > 0)
    if rows is not None:
        time = time * rows
    weight = np.bincount(index, time, len(judged))
    found: dict[tuple[float, float], Roof] = {}
    for place in np.argsort(-weight, kind="stable").tolist():
        flops, memory = judged[place].flops_peak, judged[place].bandwidth_peak
        if weight[place] and flops is not None and memory is not None:
            key = (flops.value, memory.value)
            found.setdefault(key, Roof(*key, f"{number(flops.value / 1e12)} TFLOP/s {flops.label}"))
    return list(found.values())[:limit]
