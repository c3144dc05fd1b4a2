"""Answers as dicts, tables and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from pyprof import api
from tests.allocations import built
from tests.analysis.captured import HOSTILE, capture

if TYPE_CHECKING:
    from pathlib import Path


def test_tables_have_the_rows_of_the_dict(tmp_path: Path) -> None:
    """Integers stay integers beside unknown ones; nested lists are tables named by their path."""
    answer = api.summary(capture(tmp_path / "net.sqlite", steps=4))
    content, tables = answer.to_dict(), answer.tables
    ops = tables["ops"]
    assert ops["time_ns"].tolist() == [op["time_ns"] for op in content["ops"]]
    assert ops["time_ns"].dtype == pd.Int64Dtype()
    assert ops["op"].isna().tolist() == [op["op"] is None for op in content["ops"]]
    evidence = [f"advice[{place}].evidence" for place in range(len(content["advice"]))]
    assert {name for name in tables if name.startswith("advice[")} <= {*evidence}


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    """A capture without serving phases; lists of texts are not tables."""
    tables = api.summary(capture(tmp_path / "net.sqlite")).tables
    assert len(tables["serving"]) == 0
    assert {"phase", "steps", "time_ns"} <= set(tables["serving"].columns)
    assert "warnings" not in tables


def test_a_prompt_shows_the_names_of_tables_only(tmp_path: Path) -> None:
    shown = repr(api.summary(capture(tmp_path / "net.sqlite", steps=4)))
    assert shown.startswith("<pyprof summary: verdict[")
    assert len(shown) < 300


def test_a_notebook_shows_each_answer_with_its_texts_escaped(tmp_path: Path) -> None:
    """The summary has its own view, others their tables."""
    net = capture(tmp_path / "net.sqlite", steps=4)
    snapshot = built.write(tmp_path / "net.pickle", built.training())
    for answer in (api.summary(net), api.diff(net, net, by="kernel"), api.memory(snapshot)):
        shown = answer._repr_html_()
        assert "<table" in shown
        assert HOSTILE not in shown
    assert "<b>changes</b>" in api.diff(net, net)._repr_html_()
