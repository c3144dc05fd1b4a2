"""The table of benchmarks: which ones run, and how they are shown."""

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.programs import TOP


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module
    monkeypatch.syspath_prepend(str(TOP / "benchmarks"))
    return importlib.import_module("table")


def test_benchmarks_are_found_by_name(table: Any) -> None:  # noqa: ANN401 - as above
    """Every `bench_*.py` is one; arguments select some of them."""
    names = table.modules([])
    assert names == sorted(names)
    assert {"bench_kineto", "bench_listening"} <= set(names)
    assert table.modules(["listen"]) == ["bench_listening"]
    assert table.modules(["nothing"]) == []


def test_rows_come_as_they_are_measured(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401 - as above
    """A row is shown before the next one is measured."""
    measured: list[str] = []

    def rows() -> Iterator[object]:
        for work in ("first", "second"):
            measured.append(work)
            yield table.Row(work, "bare, 1 s", "2 s", 2.0, None, "≤ 1.7")

    module = ModuleType("bench_made_up")
    module.rows = rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "bench_made_up", module)
    first = next(table.measured(["bench_made_up"]))
    assert measured == ["first"]
    assert table.markdown(table.cells(first)) == "| first | bare, 1 s | 2 s | 2.00 |  | ≤ 1.7 |"
