"""CSV has the rows of `pyprof.load`."""

import csv
from pathlib import Path

import pyprof
from tests.analysis.captured import HOSTILE
from tests.export.exported import export


def test_csv_holds_every_column_and_row(source: Path) -> None:
    """Names and values are those of the frame; unknown is empty; shapes are written `2x3`."""
    with export(source, ".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = pyprof.load(source)
    assert list(rows[0]) == list(frame.columns)
    assert [int(row["sil"]) for row in rows] == frame["sil"].tolist()
    assert [row["op"] for row in rows] == frame["op"].fillna("").tolist()
    assert rows[0]["sizes"] == "16x8"
    assert rows[-1]["long_name"] == HOSTILE
