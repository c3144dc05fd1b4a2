"""JSON has the rows of `pyprof.load`."""

import json
from pathlib import Path

import pyprof
from tests.export.exported import export


def test_json_is_a_list_of_objects(source: Path) -> None:
    """Unknown is null, never 0; lists stay lists."""
    rows = json.loads(export(source, ".json").read_text())
    assert [row["sil"] for row in rows] == pyprof.load(source)["sil"].tolist()
    assert rows[-1]["op"] is None
    assert rows[0]["sizes"] == [[16, 8]]
