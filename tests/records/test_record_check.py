"""Impossible rows of records."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof.errors import RecordsError
from pyprof.parse import parse_file
from pyprof.records.record_check import plausible_records
from pyprof.records.records import Records
from tests.analysis.captured import capture


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return parse_file(capture(tmp_path / "net.sqlite", steps=4))


def test_valid_records_are_unchanged(records: Records) -> None:
    checked = plausible_records("net.dict", records)
    assert checked.rows == records.rows
    assert checked.warnings == records.warnings


def test_rows_that_end_before_they_start_lose_their_time(records: Records) -> None:
    end = records.arrow("end").to_pylist()
    end[0] = records.arrow("start").to_pylist()[0] - 1000
    broken = replace(records, columns={**records.columns, "end": pa.array(end, pa.int64())})
    checked = plausible_records("net.dict", broken)
    assert checked.rows == records.rows
    assert checked.arrow("kDuration").to_pylist()[0] is None
    assert checked.arrow("kDuration").to_pylist()[1:] == records.arrow("kDuration").to_pylist()[1:]
    assert len(checked.warnings) > len(records.warnings)


def test_records_without_a_single_valid_time_are_refused(records: Records) -> None:
    before = pa.array([start - 5 for start in records.arrow("start").to_pylist()], pa.int64())
    broken = replace(records, columns={**records.columns, "end": before})
    with pytest.raises(RecordsError, match=r"net\.dict"):
        plausible_records("net.dict", broken)
