"""The peak and what made it up: sums agree, and planted causes come out."""

from pathlib import Path

import pytest

from pyprof.allocations import read
from pyprof.analysis.memory import peaks
from pyprof.inputs.memory_recordings import recordings
from tests.allocations import built
from tests.conftest import CAPTURES

REAL = sorted((CAPTURES / "memory-torch-snapshots").glob("*.pickle"))


def _analysed(path: Path) -> peaks.DeviceMemory:
    return peaks.highest_first([read.read(path)])[0]


@pytest.fixture
def trained(tmp_path: Path) -> peaks.DeviceMemory:
    device = built.training(leak=1000)
    device.oom(1 << 30, 77, built.CALL, built.user(10))
    return _analysed(built.write(tmp_path / "x.pickle", device))


def _sums_agree(device: peaks.DeviceMemory) -> None:
    for groups in device.by.values():
        assert sum(group.bytes for group in groups) == device.peak_bytes
    points = [point for point in device.timeline if point.bytes == device.peak_bytes]
    assert points or device.peak_event_id < 0
    assert all(sum(point.category_bytes) == point.bytes for point in device.timeline)


def test_sums_agree(trained: peaks.DeviceMemory) -> None:
    """Every grouping adds up to the peak, which is in the timeline; so do its categories."""
    _sums_agree(trained)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_sums_of_real_snapshots_agree(path: Path) -> None:
    _sums_agree(_analysed(path))


def test_a_planted_oom_comes_out(trained: peaks.DeviceMemory) -> None:
    (oom,) = trained.out_of_memory
    assert (oom.asked_bytes, oom.device_free_bytes) == (1 << 30, 77)
    assert oom.line == "/home/user/train.py:10"
    assert oom.allocated_bytes == trained.end_bytes
    assert oom.reserved_bytes == 1 << 40
    assert oom.free_bytes == (1 << 40) - (trained.end_allocated_bytes or 0)
    assert oom.largest_free_bytes is not None
    assert 0 < oom.largest_free_bytes < oom.free_bytes


def test_the_peak_is_where_most_is_live(trained: peaks.DeviceMemory) -> None:
    """In the last step's optimizer, with what has leaked until then."""
    categories = {group.name: group.bytes for group in trained.by["category"]}
    assert categories["parameters"] == 4 * built.MIB
    assert categories["optimizer state"] == 8 * built.MIB
    assert trained.peak_bytes == sum(categories.values())
    assert categories[None] >= 1000


def test_byte_ns_is_size_times_life(tmp_path: Path) -> None:
    """From allocation to free; to the end of the recording where there is none."""
    device = built.Device()
    first = device.alloc(1000, built.user(1))
    device.alloc(500, built.user(2))
    device.free(first, built.user(1))
    lines = {g.name: g.byte_ns for g in _analysed(built.write(tmp_path / "x", device)).by["line"]}
    assert lines["/home/user/train.py:1"] == 1000 * 20_000
    assert lines["/home/user/train.py:2"] == 500 * 20_000


def test_large_blocks_can_be_held_long(tmp_path: Path) -> None:
    """10 GB for 100 s are more byte times ns than 64 bits hold."""
    device = built.Device()
    device.alloc(10**10, built.user(1))
    device.time_us += 10**8
    device.alloc(1, built.user(2))
    (line, _) = _analysed(built.write(tmp_path / "x", device)).by["line"]
    assert line.byte_ns == pytest.approx(1e10 * 1e11, rel=1e-6)


def test_the_device_that_peaks_highest_comes_first(tmp_path: Path) -> None:
    """Over all files; the rank is that of the file's name."""
    for rank, size in enumerate((10, 30, 20)):
        device = built.Device()
        device.alloc(size)
        built.write(tmp_path / f"snap.rank{rank}.pickle", device)
    found = peaks.highest_first(recordings([str(tmp_path)]))
    assert [(each.rank, each.peak_bytes) for each in found] == [(1, 30), (2, 20), (0, 10)]


def test_without_times_there_are_no_durations(tmp_path: Path) -> None:
    """Older torch recorded none; levels are as ever."""
    device = built.training()
    for event in device.events:
        del event["time_us"]
    found = _analysed(built.write(tmp_path / "x.pickle", device))
    assert (found.span_ns, found.peak_time_ns) == (None, None)
    assert all(group.byte_ns is None for group in found.by["line"])
    assert {point.time_ns for point in found.timeline} == {None}
    assert found.timeline[-1].event_id == found.event_count - 1
    _sums_agree(found)
