"""Parquet files: the encoding of columns, and what other readers see."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyprof import schema
from pyprof.records import parquet
from pyprof.records.records import DictionaryColumn, Records, split_numbers

ROWS = 3000
FIRST = np.arange(ROWS)


def texts(row: int) -> list[str]:
    """Return what an op's own ranges say, which differs in numbers alone."""
    return [f"aten::mm, seq = {row}, op_id = {row + 1}, sizes = [[2, 2]]"] * (row % 3)


def records() -> Records:
    return Records(
        ROWS,
        {
            "kShortName": DictionaryColumn(FIRST % 7, [f"k{number}" for number in range(7)]),
            "kDuration": pa.array(FIRST * 7919 % 1000),
            "seqMarker": split_numbers(pa.array(map(texts, range(ROWS)), pa.list_(pa.string()))),
            "seqId": pa.array([[row] * (row % 3) for row in range(ROWS)], pa.list_(pa.int64())),
            "grid": DictionaryColumn(FIRST % 3 - 1, [[1, 2, 3], []]),
            "start": pa.array(FIRST * 10, mask=FIRST == 5),
            "launch": pa.array([None, *([row, row + 3] for row in range(1, ROWS))]),
            "opId": pa.array(FIRST // 2, mask=FIRST % 5 == 0),
            "rank": pa.array(np.ones(ROWS, np.int64)),
        },
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "net.parquet"
    with file.open("wb") as opened:
        parquet.write(records(), opened)
    return file


def test_columns_and_types_are_those_of_the_schema(path: Path) -> None:
    expected = records()
    found = pq.read_table(path)
    assert found.schema.equals(schema.PARQUET)
    for name in expected.columns:
        assert found.column(name).combine_chunks().equals(expected.arrow(name)), name
    assert parquet.read(path).table() == expected.table()


def _written(path: Path) -> dict[str, pq.ColumnChunkMetaData]:
    """Return how each column of the first row group was written."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    return {column.path_in_schema.split(".")[0]: column for column in columns}


def test_ascending_columns_are_delta_encoded(path: Path) -> None:
    """Times and ids; repeated values as dictionaries, and no column as both."""
    encodings = {name: column.encodings for name, column in _written(path).items()}
    rising = {name for name, used in encodings.items() if "DELTA_BINARY_PACKED" in used}
    repeating = {name for name, used in encodings.items() if "RLE_DICTIONARY" in used}
    assert rising == {"seqId", "start", "end", "launch", "corrId", "opId", "callIds"}
    assert {"kShortName", "layer", "sizes", "seqTemplate", "rank"} <= repeating
    assert not repeating & (rising | {"kDuration", "seqMarker"})


def test_rows_can_be_sought_by_time_and_rank(path: Path) -> None:
    columns = _written(path)
    for name, bounds in {
        "kDuration": (0, 999),
        "start": (0, 10 * ROWS - 10),
        "rank": (1, 1),
    }.items():
        assert (columns[name].statistics.min, columns[name].statistics.max) == bounds, name


def test_row_groups_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the first is written soon; no row is lost in between."""
    monkeypatch.setattr(parquet, "_FIRST_ROWS", 100)
    monkeypatch.setattr(parquet, "_ROWS", 700)
    path = tmp_path / "net.parquet"
    with path.open("wb") as opened:
        parquet.write(records(), opened)
    described = pq.read_metadata(path)
    rows = [described.row_group(place).num_rows for place in range(described.num_row_groups)]
    assert rows == [100, 200, 400, 700, 700, 700, 200]
    assert parquet.read(path).table() == records().table()


def test_too_little_memory_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_metadata(_: Path) -> None:
        raise pa.ArrowMemoryError("malloc failed")

    monkeypatch.setattr(pq, "read_metadata", read_metadata)
    with pytest.raises(MemoryError):
        parquet.read(tmp_path / "net.parquet")
