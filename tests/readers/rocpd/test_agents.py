"""GPUs of a machine as described by rocprofv3."""

from pathlib import Path

from pyprof import readers
from tests.builders import Work, rocpd_db


def test_the_gpu_is_described(tmp_path: Path) -> None:
    devices = readers.read(
        rocpd_db(tmp_path / "net.db", [Work(), Work(device=1)])
    ).devices.to_pylist()
    assert [device["device"] for device in devices] == [0, 1]
    assert {device["name"] for device in devices} == {"AMD Instinct MI300X"}
    assert {(device["sm_count"], device["clock_hz"]) for device in devices} == {
        (304, 2_100_000_000)
    }
