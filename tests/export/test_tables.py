"""CSV, JSON, Parquet and Markdown: the same rows as `pyprof.load` gives."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pyprof
from tests.analysis.captured import HOSTILE, capture
from tests.commands import run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return capture(tmp_path / "net.sqlite")


def export(source: Path, suffix: str) -> Path:
    target = source.with_suffix(suffix)
    done = run("export", source, "-o", target)
    assert (done.code, done.stdout) == (0, ""), done.stderr
    return target


def test_csv_holds_every_column_and_row(source: Path) -> None:
    """Names and values are those of the frame; unknown is empty; shapes are spelt `2x3`."""
    with export(source, ".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    frame = pyprof.load(source)
    assert list(rows[0]) == list(frame.columns)
    assert [int(row["sil"]) for row in rows] == frame["sil"].tolist()
    assert [row["op"] for row in rows] == frame["op"].fillna("").tolist()
    assert rows[0]["sizes"] == "16x8"
    assert rows[-1]["long_name"] == HOSTILE


def test_json_is_a_list_of_objects(source: Path) -> None:
    """Unknown is null, never 0; lists stay lists."""
    rows = json.loads(export(source, ".json").read_text())
    assert [row["sil"] for row in rows] == pyprof.load(source)["sil"].tolist()
    assert rows[-1]["op"] is None
    assert rows[0]["sizes"] == [[16, 8]]


def test_parquet_says_what_its_columns_mean(source: Path) -> None:
    """Any reader gets the frame's columns, with their help as metadata."""
    table = pq.read_table(export(source, ".parquet"))
    assert table.column_names == list(pyprof.load(source).columns)
    assert table.schema.field("sil").metadata[b"description"] == b"Time on the GPU, ns."


def test_markdown_totals_ops_kernels_layers_and_lines(source: Path) -> None:
    """A section each, the longest first; what no op called is one group."""
    text = export(source, ".md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == ["# GPU profile", "## Ops", "## Kernels", "## Layers", "## Source lines"]
    ops = text.split("## Ops")[1].split("##")[0].splitlines()[4:]
    assert [line.split(" | ")[:3] for line in ops if line] == [
        ["| exp", "1", "300 ns"],
        ["| \\(none\\)", "2", "250 ns"],
        ["| relu", "2", "200 ns"],
    ]
