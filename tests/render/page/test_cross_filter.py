"""Facts: sums behind a selection, without folders."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyprof.inputs import source
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records.merging import merge_sums
from pyprof.render.page import cross_filter
from pyprof.render.page.cross_filter import FilterData, chosen_facts, row_facts
from tests.analysis.captured import capture


def found(file: Path) -> pa.Table:
    return chosen_facts(row_facts(source.load(str(file)).table))


def test_facts_add_up_by_every_text(tmp_path: Path) -> None:
    table = source.load(str(capture(tmp_path / "net.sqlite", steps=2))).table
    combinations = chosen_facts(row_facts(table))
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
    found = row_facts(table, chosen)
    kernels = found.combinations.column("kernel").take(found.of_row).to_pylist()
    assert kernels == COLUMNS["kernel"].values(table).to_pylist()
    assert pc.sum(found.combinations.column("ns")).as_py() == table.duration_ns[chosen].sum()


@pytest.mark.slow
def test_facts_of_two_captures_add_up(tmp_path: Path) -> None:
    """Common ones are there once, with the time of both."""
    one, other = (found(capture(tmp_path / f"{rank}.sqlite", slower=rank)) for rank in (1, 2))
    both = merge_sums(one, other)
    assert both.num_rows == one.num_rows
    times = {row["kernel"]: row["ns"] for row in both.to_pylist()}
    assert times["relu_kernel"] == 200 + 400


def select(data: dict[str, Any], key: str) -> list[int]:
    tests = [condition.split("=") for condition in key.split()]
    return [
        place
        for place in range(len(data["ns"]))
        if all(
            {*([found] if isinstance(found := data["columns"][name][place], int) else found)}
            & {int(number) for number in numbers.split(",")}
            for name, numbers in tests
        )
    ]


def test_a_key_selects_the_facts_with_its_texts(tmp_path: Path) -> None:
    """And no others; a stack's key selects those that pass through the line."""
    selectable = FilterData(found(capture(tmp_path / "net.sqlite")))
    data = json.loads(json.dumps(selectable.data()))
    time: dict[str, dict[str, str | None]] = {
        "op": {"op": "relu"}, "no op": {"op": None, "dir": None},
        "caller": {"stack": "/home/me/train.py:7"}, "line": {"line": "/home/me/train.py:7"},
    }  # fmt: skip
    keys = {name: selectable.key(**texts) for name, texts in time.items()}
    sums = {name: sum(data["ns"][place] for place in select(data, key or "op=99"))
            for name, key in keys.items()}  # fmt: skip
    assert sums == {"op": 200, "no op": 50, "caller": 500, "line": 0}
    assert selectable.key(op="never ran") is None
    spelt = selectable.named_key({"dir": "forward", "op": "relu"})
    assert spelt == selectable.key(dir="fprop", op="relu")


def test_what_is_left_out_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many combinations the longest are kept; the time of the rest is stated."""
    monkeypatch.setattr(cross_filter, "_MAX_FACTS", 2)
    data = FilterData(found(capture(tmp_path / "net.sqlite"))).data()
    assert data["ns"] == [300, 200]
    assert (data["total_ns"], data["left_out"], data["left_out_ns"]) == (750, 2, 250)
