"""The answer of `pyprof lines`."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture
from tests.answers.checked import ask


@pytest.mark.slow
def test_lines_add_up(tmp_path: Path) -> None:
    """Self times and unknown time are the total; the slowest line comes first."""
    answer = ask("lines", capture(tmp_path / "a.sqlite"))
    own = [line["own_ns"] for line in answer["lines"]]
    assert own == sorted(own, reverse=True)
    assert sum(own) + answer["unknown_ns"] == answer["total_ns"] == 750
    slowest = answer["lines"][0]
    assert slowest["line"] == "/home/me/model.py:30" == f"{slowest['file']}:{slowest['number']}"
    assert (slowest["calls"], slowest["own_ns"], slowest["share"]) == (1, 300, 0.4)


def test_source_is_read_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is sent to others: files in the current folder are not read otherwise."""
    folder = tmp_path / "me"
    folder.mkdir()
    (folder / "model.py").write_text("\n" * 11 + "    x = relu(x)\n")
    a = capture(tmp_path / "a.sqlite")
    monkeypatch.chdir(folder)
    assert {line["source"] for line in ask("lines", a)["lines"]} == {None}
    texts = {line["number"]: line["source"] for line in ask("lines", a, "--source", ".")["lines"]}
    assert texts == {12: "    x = relu(x)", 30: None, 7: None}
