"""How much of the GPU time has a known cost, and what most of the rest is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.prof.processor import GPU, processor_of, processor_of_both
from pyprof.records.merging import merged_by
from pyprof.records.records import time_by_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Int64Array, Mask
    from pyprof.prof.table import Table
    from pyprof.records.records import DictionaryColumn, Records, RowTime


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over rows; those of several captures add up."""

    total_ns: int
    unknown: Mapping[str, RowTime]
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


def cost_coverage(table: Table, rows: Mask | None = None) -> Coverage:
    """Sum up all rows, or those chosen."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    return sum_coverage(
        table.duration_ns[chosen],
        table.costs.why_unknown.take(chosen),
        is_kernel(table.records)[chosen],
        processor_of(table.records),
    )


def sum_coverage(
    duration_ns: Int64Array, why_unknown: DictionaryColumn, kernels: Mask, processor: str
) -> Coverage:
    """Sum up rows, given why the cost of each is unknown, and which are kernels."""
    by_reason = time_by_value(why_unknown, duration_ns)
    by_reason.pop(None, None)
    return Coverage(
        int(duration_ns.sum()),
        by_reason,
        processor,
        int(duration_ns[kernels].sum()),
        int(duration_ns[kernels & (why_unknown.index < 0)].sum()),
    )


def is_kernel(records: Records) -> Mask:
    """Find the rows that are neither copies nor fills."""
    return ~records.of_kind(schema.MEMCPY, schema.MEMSET)
