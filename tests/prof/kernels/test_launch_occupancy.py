"""Occupancy of kernels from their launch; unknown if launch or device is."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.arrays import Int64Array
from pyprof.gpu.peaks import Device
from pyprof.parse import parse_file
from pyprof.prof.kernels.launch_occupancy import (
    LIMITS,
    Occupancy,
    blocks_per_sm,
    occupancy_of,
    warp_share,
    wave_counts,
)
from tests import damage
from tests.builders import Work, nsys_db

A100 = Device("NVIDIA A100-SXM4-80GB", 108, cc=(8, 0))


def _occupancy(folder: Path, device: Device, *work: Work) -> Occupancy:
    rows = [replace(one, at=(1000 * n, 1000 * n + 500)) for n, one in enumerate(work, 1)]
    records = parse_file(nsys_db(folder / "net.sqlite", rows))
    return occupancy_of(records, lambda name: device if name else Device(None))


def test_what_fits_on_an_sm_by_hand(tmp_path: Path) -> None:
    """5 blocks of 256 threads with 48 registers: 40 of 64 warps; a wave is 5 x 108 blocks."""
    launch = Work(grid=(540, 2, 1), block=(256, 1, 1), regs=48, smem=0)
    half = Work(grid=(54, 1, 1), block=(512, 1, 1), regs=32, smem=0)
    found = _occupancy(tmp_path, A100, launch, half, launch)
    assert found.occupancy.tolist() == [5 * 8 / 64, 1, 5 * 8 / 64]
    assert found.waves.tolist() == [2, 54 / (4 * 108), 2]


@pytest.mark.parametrize(
    ("device", "work"),
    [
        (Device("NVIDIA A100-SXM4-80GB", 108), Work()),
        (Device("some GPU of the future", 108, cc=(99, 0)), Work()),
        (A100, Work(kind="memcpy", bytes=64)),
    ],
    ids=["no capability", "unknown capability", "no kernel"],
)
def test_unknown_launches_and_devices_are_nan(tmp_path: Path, device: Device, work: Work) -> None:
    found = _occupancy(tmp_path, device, work)
    assert np.isnan(found.occupancy).all()
    assert np.isnan(found.waves).all()


def _one(cc: tuple[int, int], threads: int, regs: int, smem: int) -> int:
    sizes: list[Int64Array] = [np.array([size]) for size in (threads, regs, smem)]
    return int(blocks_per_sm(LIMITS[cc], *sizes)[0])


@pytest.mark.parametrize(
    ("cc", "threads", "regs", "smem", "blocks"),
    [
        # The A100's, as in ncu's sections "Occupancy" of real kernels.
        ((8, 0), 256, 48, 0, 5),
        ((8, 0), 256, 37, 0, 6),
        ((8, 0), 128, 94, 33792, 4),
        ((8, 0), 64, 16, 0, 32),
        ((8, 0), 128, 125, 10752, 4),
        ((8, 0), 32, 128, 8704, 16),
        ((8, 0), 512, 32, 0, 4),
        # By hand, from the table of the programming guide.
        ((7, 5), 1024, 32, 0, 1),
        ((8, 6), 1024, 32, 0, 1),
        ((8, 9), 64, 32, 0, 24),
        ((7, 0), 256, 32, 49152, 2),
        ((9, 0), 384, 168, 227 * 1024, 1),
        ((9, 0), 128, 32, 228 * 1024, 0),
        ((6, 0), 96, 255, 0, 2),
        ((8, 0), 2048, 32, 0, 0),
        ((8, 0), 0, 32, 0, 0),
    ],
)
def test_blocks_per_sm_are_limited_by_each_resource(
    cc: tuple[int, int], threads: int, regs: int, smem: int, blocks: int
) -> None:
    assert _one(cc, threads, regs, smem) == blocks


@given(st.sampled_from(sorted(LIMITS)), st.integers(1, 1024), st.integers(1, 255),
       st.integers(0, 227 << 10))  # fmt: skip
def test_occupancy_equals_brute_force_placement(
    cc: tuple[int, int], threads: int, regs: int, smem: int
) -> None:
    """Blocks are placed one by one, each warp on the sub-partition with most free registers."""
    limits = LIMITS[cc]
    free = [65536 // limits.parts] * limits.parts
    of_warp = math.ceil(regs * 32 / 256) * 256
    shared = limits.smem_bytes
    of_block = math.ceil((smem + limits.reserved_bytes) / limits.smem_unit_bytes)
    warps = math.ceil(threads / 32)
    placed = 0
    while placed < limits.blocks and (placed + 1) * warps <= limits.warps:
        for _ in range(warps):
            free[free.index(max(free))] -= of_warp
        shared -= of_block * limits.smem_unit_bytes
        if min(free) < 0 or shared < 0:
            break
        placed += 1
    assert _one(cc, threads, regs, smem) == placed


def test_waves_and_share() -> None:
    blocks = np.array([5, 0])
    assert warp_share(LIMITS[8, 0], np.array([256, 256]), blocks).tolist() == [
        0.625,
        pytest.approx(math.nan, nan_ok=True),
    ]
    assert wave_counts(np.array([1080, 8]), blocks, 108)[0] == 2.0
    assert np.isnan(wave_counts(np.array([1080, 8]), blocks, None)).all()


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["kineto-h100-vit-inference", "kineto-a100-sam-inductor", "kineto-v100-resnet-ddp",
     "kineto-h100-transformer-user-ranges"],
)  # fmt: skip
def test_kineto_estimates_the_same(name: str, captures: Path) -> None:
    """Kineto writes the share of an SM's threads that the grid fills, by CUDA's calculator.

    It writes 0 for kernels that were allowed more shared memory than any kernel can have.
    """
    trace = json.loads(gzip.decompress((captures / name / "trace.json.gz").read_bytes()))
    device = trace["deviceProperties"][0]
    limits = LIMITS[device["computeMajor"], device["computeMinor"]]
    events = [event["args"] for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    args = {json.dumps(a["grid"] + a["block"] + [a["registers per thread"], a["shared memory"]]): a
            for a in events
            if "est. achieved occupancy %" in a and a["shared memory"] <= 48 << 10}  # fmt: skip
    assert args
    for a in args.values():
        assert _estimate(a, limits.warps, device) == pytest.approx(
            a["est. achieved occupancy %"], abs=1
        ), a


def _estimate(a: dict[str, Any], warps: int, device: dict[str, Any]) -> float:
    threads = math.prod(a["block"])
    cc = device["computeMajor"], device["computeMinor"]
    fitting = _one(cc, threads, a["registers per thread"], a["shared memory"])
    blocks = min(math.prod(a["grid"]) / device["numSms"], fitting)
    return float(100 * blocks * threads / (32 * warps))


def test_limits_are_those_that_captures_hold(captures: Path) -> None:
    """Nsys writes the limits of each GPU, as the driver reports them."""
    found = set()
    for path in captures.glob("nsys*/net.sqlite"):
        if not damage.query(path, f"{_TABLES} AND name = 'TARGET_INFO_GPU'"):
            continue
        for major, minor, *told in damage.query(path, _LIMITS):
            limits = LIMITS[major, minor]
            wanted = [limits.warps, limits.blocks, limits.smem_bytes, 65536]
            known = [(a, b) for a, b in zip(told, wanted, strict=True) if a]  # 0: before 2022
            assert all(a == b for a, b in known), path
            found.add((major, minor))
    assert found == {(7, 5), (8, 0), (9, 0)}


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_LIMITS = (
    "SELECT computeMajor, computeMinor, maxWarpsPerSm, maxBlocksPerSm, maxShmemPerSm, "
    "maxRegistersPerSm FROM TARGET_INFO_GPU"
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("damaged", [-1, 2**31, 2**58, 2**63 - 1, -(2**63)])
def test_impossible_launches_have_no_occupancy(damaged: int) -> None:
    """Whichever figure is impossible: no block fits, and no library's error is shown."""
    sound = [np.array([value]) for value in (128, 32, 1024)]
    for limits in LIMITS.values():
        assert blocks_per_sm(limits, *sound)[0] > 0
        for place in range(3):
            figures = [*sound]
            figures[place] = np.array([damaged])
            assert blocks_per_sm(limits, *figures)[0] == 0
