"""The peak and its parts: sums agree, and planted causes are found."""

from pathlib import Path

import pytest

from pyprof.allocations import read
from pyprof.analysis.memory import peaks
from pyprof.answers.memory_answer import DeviceMemory
from tests.allocations import built
from tests.known import known


def analysed(path: Path) -> DeviceMemory:
    return peaks.highest_first([read.read(path)])[0]


@pytest.fixture
def trained(tmp_path: Path) -> DeviceMemory:
    device = built.training(leak=1000)
    device.oom(1 << 30, 77, built.CALL, built.user(10))
    return analysed(built.write(tmp_path / "x.pickle", device))


def check_sums(device: DeviceMemory) -> None:
    for groups in device.by.values():
        assert sum(group.bytes for group in groups) == device.peak_bytes
    points = [point for point in device.timeline if point.bytes == device.peak_bytes]
    assert points or device.peak_event_id < 0
    assert all(sum(point.category_bytes) == point.bytes for point in device.timeline)


def test_sums_agree(trained: DeviceMemory) -> None:
    """Every grouping adds up to the peak, which is in the timeline; so do its categories."""
    check_sums(trained)


def test_a_planted_oom_is_found(trained: DeviceMemory) -> None:
    (oom,) = trained.out_of_memory
    assert (oom.asked_bytes, oom.device_free_bytes) == (1 << 30, 77)
    assert oom.line == "/home/user/train.py:10"
    assert oom.allocated_bytes == trained.end_bytes
    assert oom.reserved_bytes == 1 << 40
    assert oom.free_bytes == (1 << 40) - (trained.end_allocated_bytes or 0)
    assert 0 < known(oom.largest_free_bytes) < oom.free_bytes


def test_the_peak_is_where_most_is_live(trained: DeviceMemory) -> None:
    """In the last step's optimizer, including what has leaked until then."""
    categories = {group.name: group.bytes for group in trained.by["category"]}
    assert categories["parameters"] == 4 * built.MIB
    assert categories["optimizer state"] == 8 * built.MIB
    assert trained.peak_bytes == sum(categories.values())
    assert categories[None] >= 1000
