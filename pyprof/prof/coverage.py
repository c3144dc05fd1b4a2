"""How much of the GPU time has a known cost, and what most of the rest is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.prof.processor import GPU, processor_of, processor_of_both
from pyprof.records.merging import merged_by
from pyprof.records.records import totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.arrays import Mask
    from pyprof.prof.table import Table
    from pyprof.records.records import Records


class UnknownRows(NamedTuple):
    """Rows whose cost is unknown for one reason."""

    ns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over rows; those of several captures add up."""

    total_ns: int
    unknown: Mapping[str, UnknownRows]
    """The rows of unknown cost by the reason."""
    processor: str = merged_by(processor_of_both, default=GPU)
    """Whose time it is."""
    kernel_ns: int = 0
    """Time of kernels: without copies and fills, whose cost is nearly always known."""
    kernel_known_ns: int = 0

    @property
    def percent(self) -> float:
        """Share of the GPU time whose cost is known."""
        unknown_ns = sum(ns for ns, _ in self.unknown.values())
        return 100 * (1 - unknown_ns / max(self.total_ns, 1))

    @property
    def kernel_percent(self) -> float | None:
        """Share of the kernels' time whose cost is known; None without kernels."""
        return 100 * self.kernel_known_ns / self.kernel_ns if self.kernel_ns else None


def cost_coverage(table: Table, rows: NDArray[np.bool_] | None = None) -> Coverage:
    """Sum up all rows, or those chosen."""
    costs, duration = table.costs, table.duration_ns
    chosen = np.ones(len(duration), bool) if rows is None else rows
    unknown = chosen & ((costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper))
    number, reasons = costs.reason.index[unknown], costs.reason.values
    ns = totals(number, duration[unknown], len(reasons))
    count = np.bincount(number, minlength=len(reasons))
    unknown_by_reason: dict[str, UnknownRows] = {}
    for index in np.flatnonzero(count).tolist():
        so_far = unknown_by_reason.get(reasons[index], UnknownRows(0, 0))
        unknown_by_reason[reasons[index]] = UnknownRows(
            so_far.ns + int(ns[index]), so_far.rows + int(count[index])
        )
    kernels = chosen & is_kernel(table.records)
    return Coverage(
        int(duration[chosen].sum()),
        unknown_by_reason,
        processor_of(table.records),
        int(duration[kernels].sum()),
        int(duration[kernels & ~unknown].sum()),
    )


def is_kernel(records: Records) -> Mask:
    """Find the rows that are neither copies nor fills."""
    return ~records.of_kind(schema.MEMCPY, schema.MEMSET)
