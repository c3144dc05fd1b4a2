"""Levels and peaks, compared with going through the events one by one."""

import pickle
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.allocations import snapshot, snapshot_device, stacks
from pyprof.allocations.history import BEFORE, History, replay
from tests.allocations import built
from tests.conftest import CAPTURES
from tests.known import known

REAL = sorted((CAPTURES / "memory-torch-snapshots").glob("*.pickle"))
_PLACES = (built.user(1), built.user(2), built.CALL, built.ENGINE)


def _history(path: Path, device: int = 0) -> History:
    return _history_of(snapshot.read(path), device)


def _history_of(taken: snapshot.Snapshot, device: int = 0) -> History:
    return snapshot_device.recorded_device(taken, device, stacks.describe(taken)).history


def _check(history: History, levels: built.Levels) -> None:
    assert history.start == levels.start
    assert history.level.tolist() == levels.after
    assert history.held(history.peak) == levels.peak
    live = history.blocks.live(history.peak)
    assert int(history.blocks.bytes[live].sum()) == levels.peak


def _at_random(rng: Random, forget: bool) -> built.Device:  # noqa: FBT001 - drawn
    device = built.Device()
    live, waiting = list[int](), list[int]()
    for _ in range(rng.randrange(1, 80)):
        if waiting and rng.random() < 0.1:
            device.complete(waiting.pop(rng.randrange(len(waiting))))
        elif live and rng.random() < 0.5:
            address = live.pop(rng.randrange(len(live)))
            pending = rng.random() < 0.1
            device.free(address, rng.choice(_PLACES), pending=pending)
            waiting += [address] if pending else []
            if not pending and rng.random() < 0.5:
                live.append(device.alloc(rng.randrange(1, 5000), rng.choice(_PLACES), at=address))
        else:
            live.append(device.alloc(rng.randrange(1, 5000), rng.choice(_PLACES)))
    if forget:
        device.forget(rng.randrange(len(device.events)))
    return device


@given(st.integers(0, 10**9), st.booleans())
def test_levels_equal_brute_force(seed: int, forget: bool) -> None:  # noqa: FBT001 - drawn
    taken = built.snapshot(_at_random(Random(seed), forget))  # noqa: S311 - no secret
    _check(_history_of(built.parsed(taken)), built.levels(taken))


@given(st.integers(0, 10**9), st.booleans())
def test_blocks_that_wait_for_a_stream_stay_occupied(seed: int, forget: bool) -> None:  # noqa: FBT001 - drawn
    """After `record_stream`, the maximum occupied is more than the peak, or later."""
    device = _at_random(Random(seed), forget)  # noqa: S311 - no secret
    if not {"free_requested", "free_completed"} <= {event["action"] for event in device.events}:
        return  # of recordings with one kind of frees, that is when blocks are given back
    history = _history_of(built.parsed(built.snapshot(device)))
    expected = built.occupied(built.snapshot(device))
    assert (history.active_in(BEFORE), history.active.tolist()) == (expected.start, expected.after)
    assert history.active_in(history.active_peak) == expected.peak


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_levels_of_real_snapshots_equal_brute_force(path: Path) -> None:
    taken = pickle.loads(path.read_bytes())  # noqa: S301 - a trusted file
    _check(_history(path), built.levels(taken))


def test_reserved_memory_is_computed_back_from_the_end(tmp_path: Path) -> None:
    """Segments came and went during the recording."""
    device = built.Device()
    device.alloc(100, built.user(1))
    for action, size in (("segment_alloc", 7), ("segment_map", 5), ("segment_free", 3)):
        device._event(action, 1, size, [])
    history = _history(built.write(tmp_path / "x.pickle", device))
    end = device.segment_bytes
    assert known(history.reserved).tolist() == [end - 9, end - 2, end + 3, end]
    assert history.reserved_in(BEFORE) == end - 9
    assert history.reserved_peak == 2


def test_frees_that_were_not_recorded() -> None:
    """A second allocation at an address ends the first; a second free is ignored."""
    kind, address, size = np.array([[0, 0, 2, 2], [8, 8, 8, 8], [10, 20, 20, 30]])
    made = replay(kind, address, size)
    assert made.blocks.bytes.tolist() == [10, 20]
    assert made.blocks.released.tolist() == [1, 2]
    assert made.lost == 1


@pytest.mark.slow
def test_devices_are_separate(tmp_path: Path) -> None:
    one, other = built.training(), built.Device(number=1)
    other.alloc(500, built.user(1))
    path = built.write(tmp_path / "x.pickle", one, other)
    assert snapshot_device.device_numbers(snapshot.read(path)) == [0, 1]
    for number in range(2):
        taken = built.snapshot(one, other)
        _check(_history(path, number), built.levels(taken, number))
