"""The table of benchmarks: which ones run, and how they are shown."""

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.benchmarks import benchmark

table = benchmark("table")


def test_benchmarks_are_found_by_name() -> None:
    """Every `bench_*.py` is one; arguments select some of them."""
    names = table.modules([])
    assert names == sorted(names)
    assert {"bench_kineto", "bench_listening"} <= set(names)
    assert table.modules(["listen"]) == ["bench_listening"]
    assert table.modules(["nothing"]) == []


def test_rows_come_as_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
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
