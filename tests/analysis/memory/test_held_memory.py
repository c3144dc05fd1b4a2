"""Blocks held at the peak: their size and lifetime."""

from pathlib import Path

import pytest

from tests.allocations import built
from tests.analysis.memory.test_peaks import analysed, check_sums


def test_byte_ns_is_size_times_lifetime(tmp_path: Path) -> None:
    """From allocation to free, or to the end of the recording."""
    device = built.Device()
    first = device.alloc(1000, built.user(1))
    device.alloc(500, built.user(2))
    device.free(first, built.user(1))
    lines = {g.name: g.byte_ns for g in analysed(built.write(tmp_path / "x", device)).by["line"]}
    assert lines["/home/user/train.py:1"] == 1000 * 20_000
    assert lines["/home/user/train.py:2"] == 500 * 20_000


def test_large_blocks_can_be_held_long(tmp_path: Path) -> None:
    """10 GB for 100 s in byte times ns exceed 64 bits."""
    device = built.Device()
    device.alloc(10**10, built.user(1))
    device.time_us += 10**8
    device.alloc(1, built.user(2))
    (line, _) = analysed(built.write(tmp_path / "x", device)).by["line"]
    assert line.byte_ns == pytest.approx(1e10 * 1e11, rel=1e-6)


def test_without_times_there_are_no_durations(tmp_path: Path) -> None:
    """Older torch recorded no times; levels are the same."""
    device = built.training()
    for event in device.events:
        del event["time_us"]
    found = analysed(built.write(tmp_path / "x.pickle", device))
    assert (found.span_ns, found.peak_time_ns) == (None, None)
    assert all(group.byte_ns is None for group in found.by["line"])
    assert {point.time_ns for point in found.timeline} == {None}
    assert found.timeline[-1].event_id == found.event_count - 1
    check_sums(found)
