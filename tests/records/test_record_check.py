"""Impossible rows of records."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from pyprof.parse import parse_file
from pyprof.records.record_check import plausible_records
from tests.analysis.captured import capture


def test_rows_that_end_before_they_start_lose_their_time(tmp_path: Path) -> None:
    records = parse_file(capture(tmp_path / "net.sqlite", steps=4))
    end = records.arrow("end").to_pylist()
    end[0] = records.arrow("start").to_pylist()[0] - 1000
    broken = replace(records, columns={**records.columns, "end": pa.array(end, pa.int64())})
    checked = plausible_records("net.dict", broken)
    assert checked.rows == records.rows
    assert checked.arrow("kDuration").to_pylist()[0] is None
    assert checked.arrow("kDuration").to_pylist()[1:] == records.arrow("kDuration").to_pylist()[1:]
    assert len(checked.warnings) > len(records.warnings)
