"""Theoretical occupancy: how many warps of a kernel fit on an SM, and in how many waves it runs.

It follows from a launch and the limits of its device, from the CUDA programming guide's table by
compute capability; registers are allocated to warps, and shared memory to blocks, in units.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.arrays import Floats, Int64Array
    from pyprof.gpu.peaks import Device
    from pyprof.records.records import DictionaryColumn, Records


WARP = 32
_KIB = 1024
_REGISTERS, _REGISTER_UNIT = 65536, 256
"""Registers of an SM, and how many a warp's are rounded up to."""
_MAX_THREADS, _MAX_REGISTERS = 1024, 255
"""CUDA's limits: threads of a block, registers of a thread."""
_MAX_SMEM_BYTES = 1 << 30
"""Far beyond any device: a larger size was damaged."""


class Limits(NamedTuple):
    """What an SM has of each resource."""

    warps: int
    blocks: int
    smem_bytes: int
    """The maximum, whatever that leaves to the L1 cache."""
    parts: int = 4
    """Sub-partitions, each with its own registers."""
    smem_unit_bytes: int = 128
    reserved_bytes: int = _KIB
    """Shared memory that the driver takes of each block."""


def _before_ampere(warps: int, blocks: int, smem_kib: int, parts: int = 4) -> Limits:
    return Limits(warps, blocks, smem_kib * _KIB, parts, smem_unit_bytes=256, reserved_bytes=0)


def _since_ampere(warps: int, blocks: int, smem_kib: int) -> Limits:
    return Limits(warps, blocks, smem_kib * _KIB)


LIMITS: Mapping[tuple[int, int], Limits] = MappingProxyType(
    {
        (5, 0): _before_ampere(64, 32, 64),
        (5, 2): _before_ampere(64, 32, 96),
        (6, 0): _before_ampere(64, 32, 64, parts=2),
        (6, 1): _before_ampere(64, 32, 96),
        (7, 0): _before_ampere(64, 32, 96),
        (7, 2): _before_ampere(64, 32, 96),
        (7, 5): _before_ampere(32, 16, 64),
        (8, 0): _since_ampere(64, 32, 164),
        (8, 6): _since_ampere(48, 16, 100),
        (8, 7): _since_ampere(48, 16, 164),
        (8, 9): _since_ampere(48, 24, 100),
        (9, 0): _since_ampere(64, 32, 228),
        (10, 0): _since_ampere(64, 32, 228),
        (10, 3): _since_ampere(64, 32, 228),
        (11, 0): _since_ampere(48, 24, 228),
        (12, 0): _since_ampere(48, 24, 100),
        (12, 1): _since_ampere(48, 24, 100),
    }
)
"""By compute capability."""


def blocks_per_sm(
    limits: Limits, threads: Int64Array, regs: Int64Array, smem_bytes: Int64Array
) -> Int64Array:
    """Return how many blocks of each kernel fit on an SM; 0 if none does or a figure is invalid.

    `threads` and `smem_bytes` (static and dynamic) are of a block, `regs` of a thread.
    """
    possible = (threads > 0) & (threads <= _MAX_THREADS) & (regs >= 0) & (smem_bytes >= 0)
    possible &= (regs <= _MAX_REGISTERS) & (smem_bytes <= _MAX_SMEM_BYTES)
    threads, regs, smem_bytes = (
        np.where(possible, each, 1) for each in (threads, regs, smem_bytes)
    )
    safe_warps = np.maximum(-(-threads // WARP), 1)
    of_warp = _round_up(np.maximum(regs, 1) * WARP, _REGISTER_UNIT)
    warps_by_regs = limits.parts * (_REGISTERS // limits.parts // of_warp)
    of_block = _round_up(smem_bytes + limits.reserved_bytes, limits.smem_unit_bytes)
    by_smem = np.where(of_block > 0, limits.smem_bytes // np.maximum(of_block, 1), limits.blocks)
    fitting = np.minimum.reduce(
        [
            np.full(len(threads), limits.blocks),
            limits.warps // safe_warps,
            warps_by_regs // safe_warps,
            by_smem,
        ]
    )
    return np.where(possible, np.maximum(fitting, 0), 0)


def _round_up(values: Int64Array, unit: int) -> Int64Array:
    return -(-values // unit) * unit


def warp_share(limits: Limits, threads: Int64Array, blocks: Int64Array) -> Floats:
    """Return the share of an SM's warps that some blocks take; NaN for none."""
    warps = -(-threads // WARP) * blocks
    return np.where(blocks > 0, warps / limits.warps, np.nan)


def wave_counts(grid: Int64Array, blocks: Int64Array, sm_count: int | None) -> Floats:
    """Return how often a grid fills the device; NaN if its SMs are unknown."""
    if not sm_count:
        return np.full(len(grid), np.nan)
    places = np.maximum(blocks * sm_count, 1)
    return np.where((blocks > 0) & (grid > 0), grid / places, np.nan)


class Occupancy(NamedTuple):
    """By row; NaN where the launch or the device is not known."""

    occupancy: Floats
    """Warps that fit on an SM, as a share of its maximum."""
    waves: Floats
    """How often the grid fills the device."""


def occupancy_of(records: Records, device_of: Callable[[str | None], Device]) -> Occupancy:
    """Compute the theoretical occupancy and the waves of each kernel."""
    grid, threads = (_product(records.dictionary(name)) for name in ("grid", "block"))
    regs, smem = (records.numpy(name) for name in ("regs", "smem"))
    is_known = (threads != MISSING) & (regs != MISSING) & (smem != MISSING)
    is_known &= records.of_kind(schema.KERNEL, None)
    gpu = records.dictionary("gpu")
    share, waves = np.full((2, records.rows), math.nan)
    for index, name in enumerate((*gpu.values, None)):
        device = device_of(name)
        limits = LIMITS.get(device.cuda_cc or (0, 0))
        here = index if name is not None else MISSING
        rows = np.flatnonzero(is_known & (gpu.index == here))
        if limits is None or not len(rows):
            continue
        blocks = blocks_per_sm(limits, threads[rows], regs[rows], smem[rows])
        share[rows] = warp_share(limits, threads[rows], blocks)
        waves[rows] = wave_counts(grid[rows], blocks, device.sm_count)
    return Occupancy(share, waves)


def _product(sizes: DictionaryColumn) -> Int64Array:
    """Multiply x, y and z; MISSING if not recorded, or more than a device could start."""

    def product(value: list[int] | None) -> int:
        count = math.prod(value or ())
        return count if value and 0 < count < _MAX_COUNT else MISSING

    return sizes.numpy(product, MISSING)


_MAX_COUNT = 1 << 62
