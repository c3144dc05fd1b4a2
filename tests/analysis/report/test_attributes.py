"""Sums of rows by what identifies them."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyprof.analysis.report.attributes import row_attributes
from pyprof.inputs import source
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records.merging import merge_sums
from tests.analysis.captured import capture


def combined(file: Path) -> pa.Table:
    return row_attributes(source.load(str(file)).table).chosen


def test_facts_add_up_by_every_text(tmp_path: Path) -> None:
    table = source.load(str(capture(tmp_path / "net.sqlite", steps=2))).table
    combinations = row_attributes(table).chosen
    for name in ("op", "dir", "line", "kernel", "family", "tc", "bound"):
        expected: Counter[str | None] = Counter()
        texts = COLUMNS[name].values(table).to_pylist()
        for text, ns in zip(texts, table.duration_ns.tolist(), strict=True):
            expected[text] += ns
        sums = combinations.group_by(name).aggregate([("ns", "sum")]).to_pylist()
        assert {row[name]: row["ns_sum"] for row in sums} == expected


def test_every_row_has_its_fact(tmp_path: Path) -> None:
    """Chosen or not: a box in the timeline refers to it."""
    table = source.load(str(capture(tmp_path / "net.sqlite", steps=2))).table
    chosen = table.duration_ns > 100
    attributes = row_attributes(table, chosen)
    kernels = attributes.combinations.column("kernel").take(attributes.of_row).to_pylist()
    assert kernels == COLUMNS["kernel"].values(table).to_pylist()
    assert pc.sum(attributes.combinations.column("ns")).as_py() == table.duration_ns[chosen].sum()


@pytest.mark.slow
def test_facts_of_two_captures_add_up(tmp_path: Path) -> None:
    """Common ones are there once, with the time of both."""
    one, other = (combined(capture(tmp_path / f"{rank}.sqlite", slower=rank)) for rank in (1, 2))
    both = merge_sums(one, other)
    assert both.num_rows == one.num_rows
    times = {row["kernel"]: row["ns"] for row in both.to_pylist()}
    assert times["relu_kernel"] == 200 + 400
