"""How much of the GPU time has a known cost, and what most of the rest is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.prof.processor import CPU, GPU, processor_of
from pyprof.records.records import totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.arrays import Mask
    from pyprof.prof.table import Table
    from pyprof.records.records import Records

_NAMED = 5
_MUCH, _SHOWN = 1, 0.1
"""Percentage points by which copies must raise the known share to be worth a word, if that is not
twice what it is without them; and those that show."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over rows; those of several captures add up."""

    total_ns: int
    unknown: Mapping[str, tuple[int, int]]
    """Time in ns and number of the rows of unknown cost, by the reason why."""
    processor: str = GPU
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

    @property
    def without_copies(self) -> str:
        """Add the share of kernels alone, if copies raise that of all; else ""."""
        kernels = self.kernel_percent
        if kernels is None or self.percent - kernels < max(min(_MUCH, self.percent / 2), _SHOWN):
            return ""
        return f", of kernels alone {kernels:.1f} %"

    @property
    def text(self) -> str:
        """Say the share, that of kernels if copies raise it, and the largest unknowns."""
        start = f"cost known for {self.percent:.1f} % of {self.processor} time{self.without_copies}"
        if not self.unknown:
            return start
        rows = sum(count for _, count in self.unknown.values())
        total_ns = max(self.total_ns, 1)
        largest = sorted(self.unknown.items(), key=lambda entry: (-entry[1][0], entry[0]))
        named = (
            f"{reason} ({100 * ns / total_ns:.1f} % in {count})"
            for reason, (ns, count) in largest[:_NAMED]
        )
        return f"{start}; unknown for {rows} row{'s' * (rows != 1)}: {', '.join(named)}"

    def plus(self, other: Coverage) -> Coverage:
        """Add what is known of other rows."""
        unknown = dict(self.unknown)
        for reason, (ns, count) in other.unknown.items():
            mine = unknown.get(reason, (0, 0))
            unknown[reason] = (mine[0] + ns, mine[1] + count)
        both = {self.processor, other.processor}
        return Coverage(
            self.total_ns + other.total_ns,
            unknown,
            CPU if both == {CPU} else GPU,
            self.kernel_ns + other.kernel_ns,
            self.kernel_known_ns + other.kernel_known_ns,
        )


def cost_coverage(table: Table, rows: NDArray[np.bool_] | None = None) -> Coverage:
    """Sum up all rows, or those chosen."""
    costs, duration = table.costs, table.duration_ns
    chosen = np.ones(len(duration), bool) if rows is None else rows
    unknown = chosen & ((costs.flops < 0) | ((costs.bytes < 0) & ~costs.helper))
    reason = costs.reason_of[unknown]
    ns = totals(reason, duration[unknown], len(costs.reason))
    count = np.bincount(reason, minlength=len(costs.reason))
    unknown_by_reason: dict[str, tuple[int, int]] = {}
    for place in np.flatnonzero(count).tolist():
        so_far = unknown_by_reason.get(costs.reason[place], (0, 0))
        unknown_by_reason[costs.reason[place]] = (
            so_far[0] + int(ns[place]),
            so_far[1] + int(count[place]),
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
    kind = records.dictionary("kind")
    copies = {schema.KINDS[schema.MEMCPY], schema.KINDS[schema.MEMSET]}
    return np.array([*(name not in copies for name in kind.values), True]).take(kind.index)
