"""Counters of dispatches in the counter columns."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyprof import readers
from tests.builders import Work, rocpd_db
from tests.commands import run
from tests.damage import ROCPD_SUFFIX, sql

WORK = [Work("gemm", at=(1000, 3000)), Work("relu", at=(4000, 5000))]
COUNTERS = {
    "FETCH_SIZE": {1: 10.0, 2: 4.0},
    "WRITE_SIZE": {1: 6.5},
    "MfmaUtil": {1: 40.0},
    "OccupancyPercent": {2: 12.5},
    "TCC_HIT_sum": {1: 30.0},
    "TCC_MISS_sum": {1: 10.0},
    "GRBM_GUI_ACTIVE": {1: 4000.0},
    "Something_Else": {1: 1.0},
}


def _measured(path: Path) -> list[dict[str, Any] | None]:
    column = readers.read(path).activities.column("counters").to_pylist()
    return [None if text is None else json.loads(text) for text in column]


@pytest.mark.slow
def test_counters_are_in_our_names_and_units(tmp_path: Path) -> None:
    """KiB become bytes, cycles a clock; a counter that lacks a part is unknown."""
    path = rocpd_db(tmp_path / "net.db", WORK, counters=COUNTERS)
    assert _measured(path) == [
        {
            "source": "rocprofv3",
            "dram_bytes": 16.5 * 1024,
            "tensor_pct": 40.0,
            "l2_hit_pct": 75.0,
            "clock_hz": pytest.approx(2e9),
        },
        {"source": "rocprofv3", "occupancy_pct": 12.5},
    ]
    assert any("one kernel at a time" in text for text in readers.read(path).warnings)
    done = run("prof", "--csv", "-c", "kernel,dram", path)
    assert "16896" in done.stdout


def test_rows_of_several_parts_of_the_chip_are_summed_or_averaged(tmp_path: Path) -> None:
    counters = {"FETCH_SIZE": {1: 1.0}, "WRITE_SIZE": {1: 1.0}, "MfmaUtil": {1: 40.0}}
    path = rocpd_db(tmp_path / "net.db", WORK[:1], counters=counters)
    events = f"rocpd_pmc_event{ROCPD_SUFFIX}"
    halves = f"SELECT event_id, pmc_id, value / 2 FROM {events}"  # noqa: S608
    sql(path, f"INSERT INTO {events} (event_id, pmc_id, value) {halves}")
    assert _measured(path) == [
        {"source": "rocprofv3", "dram_bytes": 3 * 1024.0, "tensor_pct": 30.0}
    ]


def test_without_counters_there_is_no_warning(tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", WORK)
    assert _measured(path) == [None, None]
    assert not any("one kernel at a time" in text for text in readers.read(path).warnings)
