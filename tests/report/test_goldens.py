"""`pyprof diff` and `pyprof export` to Markdown: what users see, whole, and that it adds up."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from pyprof.parse.recordfile import load
from tests.commands import run
from tests.golden import beside, check
from tests.programs import generate

if TYPE_CHECKING:
    from pathlib import Path

    Pair = tuple[Path, Path]


@pytest.fixture(params=["generated", "a100-v100"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    """Give two captures: of a network and a deeper one, or of two GPUs by two tools."""
    if request.param == "generated":
        a, b = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
        generate(a, "--kernels", "60")
        generate(b, "--kernels", "60", "--blocks", "3")
        return a, b
    captures: Path = request.getfixturevalue("captures")
    return (
        captures / "nsys2024.2-a100-pyprof-markers" / "net.sqlite",
        captures / "nvprof-v100-apex" / "net.sql",
    )


def name_of(pair: Pair) -> str:
    """Name the pair in a golden's name."""
    return "generated" if pair[0].name == "a.sqlite" else "a100-v100"


def total_ns(path: Path) -> int:
    """Add up the records' own times."""
    return int(pc.sum(load(str(path)).arrow("kDuration")).as_py())


@pytest.mark.parametrize("form", ["table", "md"])
def test_diff_as_users_see_it(pair: Pair, form: str, tmp_path: Path) -> None:
    """The whole text, in the terminal and as Markdown."""
    target = tmp_path / f"diff.{'md' if form == 'md' else 'txt'}"
    done = run("diff", "-q", *pair, "-o", target)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    check(beside(__file__, f"diff-{name_of(pair)}-{form}"), target.read_text("utf-8"))


def test_both_sides_of_a_diff_add_up(pair: Pair) -> None:
    """Rows add up to the GPU time of each capture, and their changes to the difference."""
    done = run("diff", "-q", "--csv", *pair)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    a, b, change = (
        sum(float(row[key] or 0) for row in rows) for key in ("a_ns", "b_ns", "change_ns")
    )
    steps = 2 if name_of(pair) == "generated" else 1  # those that both have alike count per step
    assert (a, b) == (total_ns(pair[0]) / steps, total_ns(pair[1]) / steps)
    assert change == b - a


def test_a_capture_differs_in_nothing_from_itself(pair: Pair) -> None:
    """Every row is the same, the changes are 0, and a limit of 0 holds."""
    done = run("diff", "-q", "--csv", pair[0], pair[0], "--fail-if", "time>0")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert done.code == 0, done.stderr
    assert rows
    assert {(row["status"], row["change_ns"]) for row in rows} == {("same", "0.0")}


def test_export_as_markdown(pair: Pair, tmp_path: Path) -> None:
    """The whole text; in each table that shows all groups calls add up to the records."""
    target = tmp_path / "net.md"
    done = run("export", "-q", pair[0], "-o", target)
    assert (done.code, done.stderr) == (0, "")
    text = target.read_text("utf-8")
    check(beside(__file__, f"export-{name_of(pair)}-md"), text)
    whole = load(str(pair[0])).rows
    assert f"\n{whole:,} kernels and copies" in text
    sections = [part.splitlines()[4:] for part in text.split("\n## ")[1:]]
    assert len(sections) >= 2
    for lines in sections:
        rows = [line.split(" | ") for line in lines if line.startswith("| ")]
        calls = sum(int(row[1].replace(",", "")) for row in rows)
        assert calls == whole if len(rows) < 20 else calls <= whole
