"""Records of a member of a set know their rank, whatever they are read from."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pyprof.inputs.engine import Here
from pyprof.inputs.ranks import members
from pyprof.inputs.records import records_of
from pyprof.parse import parse_file
from tests.builders import Work, nsys_db
from tests.commands import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder of two captures, with two ranks of 2 and 3 rows each."""
    path = tmp_path / "run"
    path.mkdir()
    work = [
        Work(at=(n * 10, n * 10 + 5), pid=7 if n % 5 < 2 else 8, device=n % 5 // 2)
        for n in range(5)
    ]
    for node in range(2):
        nsys_db(path / f"node{node}.sqlite", work)
    return path


def _ranks(source: Path) -> list[Counter[int]]:
    """Count the rows of each rank, member by member."""
    found = members([str(source)], Here())
    return [Counter(records_of(member).arrow("rank").to_pylist()) for member in found]


def test_ranks_of_a_capture_are_told_apart_by_process(folder: Path) -> None:
    """Numbered on from capture to capture."""
    assert _ranks(folder) == [Counter({0: 2, 1: 3}), Counter({2: 2, 3: 3})]


def test_a_part_of_a_dataset_is_of_one_rank(folder: Path, tmp_path: Path) -> None:
    """Its rows are the capture's, every other column as it was."""
    run("parse", folder, "-o", f"{tmp_path / 'out'}/")
    assert _ranks(tmp_path / "out") == [
        Counter({0: 2}),
        Counter({1: 3}),
        Counter({2: 2}),
        Counter({3: 3}),
    ]
    part = records_of(members([str(tmp_path / "out")], Here())[1]).table()
    whole = parse_file(folder / "node0.sqlite").table()
    of_rank = [row | {"rank": 1} for row in whole.to_pylist() if row["pid"] == 8]
    assert part.to_pylist() == of_rank


def test_a_capture_of_one_rank(tmp_path: Path) -> None:
    """All of its rows, and those that were parsed from it."""
    capture = nsys_db(tmp_path / "net.rank6.sqlite", [Work()] * 3)
    assert _ranks(capture) == [Counter({6: 3})]
    lines = tmp_path / "net.rank6.dict"
    run("parse", capture, "-o", lines)
    assert _ranks(lines) == [Counter({6: 3})]
