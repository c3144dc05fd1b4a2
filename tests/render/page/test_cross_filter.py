"""Facts: sums behind a selection, without folders."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyprof.analysis.report.attributes import row_attributes
from pyprof.inputs import source
from pyprof.render.page import cross_filter
from pyprof.render.page.cross_filter import FilterData
from tests.analysis.captured import capture


def combined(file: Path) -> pa.Table:
    return row_attributes(source.load(str(file)).table).chosen


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
    selectable = FilterData(combined(capture(tmp_path / "net.sqlite")))
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
    data = FilterData(combined(capture(tmp_path / "net.sqlite"))).data()
    assert data["ns"] == [300, 200]
    assert (data["total_ns"], data["left_out"], data["left_out_ns"]) == (750, 2, 250)
