"""How full the device could be with each kernel, from its launch and the limits of its device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING
from pyprof.gpu import occupancy
from pyprof.records.records import first_rows, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Floats, Int64Array, IntArray, Mask
    from pyprof.gpu.peaks import Device
    from pyprof.records.records import DictionaryColumn, Records


@dataclass(frozen=True, slots=True)
class Occupancy:
    """By row; NaN where the launch or the device is not known."""

    occupancies: Floats
    """Of launches alike: warps that fit on an SM, as a share of those that an SM can hold."""
    all_waves: Floats
    """Of launches alike: how often the grid fills the device."""
    of_row: IntArray
    """Which of these launches each row is one of."""

    @property
    def occupancy(self) -> Floats:
        """Warps that fit on an SM, as a share of those that an SM can hold."""
        return self.occupancies.take(self.of_row)

    @property
    def waves(self) -> Floats:
        """How often the grid fills the device."""
        return self.all_waves.take(self.of_row)


def occupancy_of(records: Records, device_of: Callable[[str | None], Device]) -> Occupancy:
    """Compute the theoretical occupancy and the waves of each kernel, once of launches alike."""
    launch = [records.dictionary(name).index for name in ("grid", "block", "gpu")]
    number = number_combinations(
        *launch, *(records.numpy(name) for name in ("regs", "smem")), _kernels(records).astype(int)
    )
    return Occupancy(*_of_launches(records, device_of, first_rows(number)), number)


def _of_launches(
    records: Records, device_of: Callable[[str | None], Device], of_rows: Int64Array
) -> tuple[Floats, Floats]:
    """Compute occupancy and waves of some rows."""
    grid, threads = (_product(records.dictionary(name))[of_rows] for name in ("grid", "block"))
    regs, smem = (records.numpy(name)[of_rows] for name in ("regs", "smem"))
    is_known = (
        (threads != MISSING) & (regs != MISSING) & (smem != MISSING) & _kernels(records)[of_rows]
    )
    gpu = records.dictionary("gpu")
    share, waves = (np.full(len(of_rows), math.nan) for _ in range(2))
    for place, name in enumerate((*gpu.values, None)):
        device = device_of(name)
        limits = occupancy.LIMITS.get(device.cuda_cc or (0, 0))
        here = place if name is not None else MISSING
        rows = np.flatnonzero(is_known & (gpu.index[of_rows] == here))
        if limits is None or not len(rows):
            continue
        blocks = occupancy.blocks_per_sm(limits, threads[rows], regs[rows], smem[rows])
        share[rows] = occupancy.occupancy(limits, threads[rows], blocks)
        waves[rows] = occupancy.waves(grid[rows], blocks, device.sm_count)
    return share, waves


def _kernels(records: Records) -> Mask:
    kind = records.dictionary("kind")
    kernel = schema.KINDS[schema.KERNEL]
    return np.array([*(value in (kernel, None) for value in kind.values), True]).take(kind.index)


def _product(sizes: DictionaryColumn) -> Int64Array:
    """Multiply x, y and z; MISSING where there are none, or none that a device could start."""
    products = [math.prod(value) if value else MISSING for value in sizes.values]
    possible = [value if 0 < value < _MOST else MISSING for value in products]
    return np.array([*possible, MISSING], np.int64).take(sizes.index)


_MOST = 1 << 62
