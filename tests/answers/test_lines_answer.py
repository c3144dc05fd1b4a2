"""The answer of `pyprof lines`."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture
from tests.answers.checked import ask


def test_lines_add_up(tmp_path: Path) -> None:
    """Own times and what is unknown are all; the slowest line comes first."""
    answer = ask("lines", capture(tmp_path / "a.sqlite"))
    own = [line["own_ns"] for line in answer["lines"]]
    assert own == sorted(own, reverse=True)
    assert sum(own) + answer["unknown_ns"] == answer["total_ns"] == 750
    slowest = answer["lines"][0]
    assert slowest["line"] == "/home/me/model.py:30" == f"{slowest['file']}:{slowest['number']}"
    assert (slowest["calls"], slowest["own_ns"], slowest["share"]) == (1, 300, 0.4)


def test_source_only_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is sent to others: the current folder is not read by itself."""
    folder = tmp_path / "me"
    folder.mkdir()
    (folder / "model.py").write_text("\n" * 11 + "    x = relu(x)\n")
    a = capture(tmp_path / "a.sqlite")
    monkeypatch.chdir(folder)
    assert {line["source"] for line in ask("lines", a)["lines"]} == {None}
    texts = {line["number"]: line["source"] for line in ask("lines", a, "--source", ".")["lines"]}
    assert texts == {12: "    x = relu(x)", 30: None, 7: None}
