"""Parquet has the rows of `pyprof.load`, with descriptions."""

from pathlib import Path

import pyarrow.parquet as pq

import pyprof
from tests.export.exported import export


def test_parquet_says_what_its_columns_mean(source: Path) -> None:
    """Any reader gets the frame's columns, with help as metadata."""
    table = pq.read_table(export(source, ".parquet"))
    assert table.column_names == list(pyprof.load(source).columns)
    assert table.schema.field("sil").metadata[b"description"] == b"Time on the GPU, ns."
