"""Free pieces of reserved memory, compared with counting bytes."""

from itertools import groupby
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pyprof.allocations import read, snapshot_device, stacks
from pyprof.allocations.free_space import FreeSpace, free_space
from tests.allocations import built
from tests.allocations.allocator import MIB, Allocator

_UNIT = 512


def _by_hand(device: built.Device) -> FreeSpace:
    used = np.zeros(device.segment_bytes // _UNIT, bool)
    for block in device.segment()["blocks"]:
        if block["state"] != "inactive":
            start = (block["address"] - built._BASE) // _UNIT
            used[start : start + block["size"] // _UNIT] = True
    runs = [len([*run]) * _UNIT for taken, run in groupby(used.tolist()) if not taken]
    return FreeSpace(sum(runs), len(runs), max(runs, default=0))


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(10))
def test_free_pieces_are_the_gaps_between_blocks(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - no secret
    device, live = built.Device(segment_bytes=1 << 18), list[int]()
    for _ in range(60):
        if live and rng.random() < 0.4:
            device.free(live.pop(rng.randrange(len(live))), pending=rng.random() < 0.2)
        else:
            live.append(device.alloc(rng.randrange(1, 4000)))
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    assert recorded.free_space(len(device.events) - 1) == _by_hand(device)


_SIZES = (300, 5000, 900_000, MIB + 1, 3 * MIB // 2, 7 * MIB, 11 * MIB + 5, 31 * MIB)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(20))
def test_tails_inside_blocks_are_not_pieces(seed: int) -> None:
    """The allocator keeps small rests in blocks; pieces equal its own after each event."""
    rng = Random(seed)  # noqa: S311 - no secret
    allocator, live = Allocator(), list[int]()
    for _ in range(rng.randrange(2, 40)):
        if live and rng.random() < 0.45:
            allocator.free(live.pop(rng.randrange(len(live))))
        elif rng.random() < 0.05:
            allocator.empty_cache()
        else:
            live.append(allocator.alloc(rng.choice(_SIZES) - rng.randrange(300)))
    taken = built.parsed(allocator.snapshot())
    blocks = snapshot_device.recorded_device(taken, 0, stacks.describe(taken)).history.blocks
    for state, sizes in enumerate(allocator.pieces):
        if allocator.events[state]["action"] in ("alloc", "free_completed"):
            expected = FreeSpace(sum(sizes), len(sizes), max(sizes, default=0))
            assert free_space(taken, 0, blocks, state) == expected


def test_segments_that_came_later_do_not_count(tmp_path: Path) -> None:
    device = built.Device(segment_bytes=1 << 12)
    device.alloc(512)
    device._event("segment_alloc", built._BASE, 1 << 12, [])
    device._event("segment_free", 1, 1 << 10, [])
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    assert recorded.free_space(0) == FreeSpace(1 << 10, 1, 1 << 10)
    assert recorded.free_space(1) == FreeSpace((1 << 10) + (1 << 12) - 512, 2, (1 << 12) - 512)
    assert recorded.free_space(2) == FreeSpace((1 << 12) - 512, 1, (1 << 12) - 512)


def test_pieces_end_where_segments_do(tmp_path: Path) -> None:
    """Two adjacent segments are two pieces: no block spans both."""
    taken = built.snapshot(built.Device(segment_bytes=1 << 12))
    second = dict(taken["segments"][0], address=built._BASE + (1 << 12), blocks=[])
    taken["segments"].append(second)
    for expandable, pieces in ((False, 2), (True, 1)):
        for segment in taken["segments"]:
            segment["is_expandable"] = expandable
        (recorded,) = read.read(built.pickled(tmp_path, taken)).devices
        assert recorded.free_space(-1) == FreeSpace(1 << 13, pieces, (1 << 13) // pieces)
