"""Mean time of a kernel on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyprof import schema

if TYPE_CHECKING:
    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source

LABEL, UNIT = "Kernel", "ns"


class KernelSums(NamedTuple):
    """Kernels, and their time."""

    kernels: int
    time_ns: int


def summarise(source: Source, rows: Mask | None) -> KernelSums:
    """Count the kernels among the chosen rows, and add up their time."""
    table = source.table
    kernels = table.records.of_kind(schema.KERNEL)
    kernels = kernels if rows is None else kernels & rows
    return KernelSums(int(kernels.sum()), int(table.duration_ns[kernels].sum()))


def value(sums: KernelSums) -> float | None:
    """Time over count."""
    return sums.time_ns / sums.kernels if sums.kernels else None
