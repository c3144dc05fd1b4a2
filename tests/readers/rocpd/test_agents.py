"""GPUs of a machine as described by rocprofv3."""

from pathlib import Path

import pytest

from pyprof import readers
from tests.builders import Work, rocpd_db
from tests.capture_files import rocpd


def test_the_gpu_is_described(tmp_path: Path) -> None:
    devices = readers.read(
        rocpd_db(tmp_path / "net.db", [Work(), Work(device=1)])
    ).devices.to_pylist()
    assert [device["device"] for device in devices] == [0, 1]
    assert {device["name"] for device in devices} == {"AMD Instinct MI300X"}
    assert {(device["sm_count"], device["clock_hz"]) for device in devices} == {
        (304, 2_100_000_000)
    }


def test_a_gpu_may_be_the_first_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id 0 is one, too."""
    monkeypatch.setattr(rocpd, "CPU_AGENT", 9)
    monkeypatch.setattr(rocpd, "FIRST_GPU", 0)
    path = rocpd_db(tmp_path / "net.db", [Work(), Work(device=1)])
    assert readers.read(path).activities["device"].to_pylist() == [0, 1]
