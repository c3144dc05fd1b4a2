"""Recordings of memory in a folder."""

from pathlib import Path

from pyprof.analysis.memory import peaks
from pyprof.inputs.memory_recordings import recordings
from tests.allocations import built


def test_the_device_that_peaks_highest_comes_first(tmp_path: Path) -> None:
    for rank, size in enumerate((10, 30, 20)):
        device = built.Device()
        device.alloc(size)
        built.write(tmp_path / f"snap.rank{rank}.pickle", device)
    found = peaks.highest_first(recordings([str(tmp_path)]))
    assert [(each.rank, each.peak_bytes) for each in found] == [(1, 30), (2, 20), (0, 10)]
