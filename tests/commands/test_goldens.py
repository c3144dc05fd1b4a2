"""The whole output of `pyprof diff` and `pyprof export` to Markdown, and that it adds up."""

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from pyprof.analysis.time.steps import find_steps
from pyprof.inputs import source
from pyprof.parse.record_file import load
from tests.commands import printed, run
from tests.golden import check
from tests.programs import generate


class Pair(NamedTuple):
    name: str
    a: Path
    b: Path
    steps: int = 1
    """Equal numbers of steps in both: figures are for one of them."""


@pytest.fixture(params=["generated", "a100-v100", "h100-ranks"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    """Return a network and a deeper one, two GPUs by two tools, or two ranks of one job."""
    if request.param == "generated":
        a, b = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
        generate(a, "--kernels", "60")
        generate(b, "--kernels", "60", "--blocks", "3")
        return Pair(request.param, a, b, steps=2)
    captures: Path = request.getfixturevalue("captures")
    if request.param == "a100-v100":
        markers = captures / "nsys2024.2-a100-pyprof-markers" / "net.sqlite"
        return Pair(request.param, markers, captures / "nvprof-v100-apex" / "net.sql")
    a, b = ranks(captures, tmp_path)
    return Pair(request.param, a, b)


def ranks(captures: Path, folder: Path) -> list[Path]:
    """Write the records of each process of the two-rank capture to a file of its own."""
    both = run("parse", "-q", captures / "nsys2026.2-h100x2-fsdp" / "net.sqlite").stdout
    lines: dict[int, list[str]] = defaultdict(list)
    for line in both.splitlines(keepends=True):
        lines[json.loads(line)["pid"]].append(line)
    paths = [folder / f"{place}.dict" for place in range(len(lines))]
    for path, (_, of_one) in zip(paths, sorted(lines.items()), strict=True):
        path.write_text("".join(of_one))
    return paths


def total_ns(path: Path, *, in_steps: bool) -> int:
    """Add up the records' own times, of what runs in a step or of all."""
    read = source.load(str(path))
    records = read.table.records
    of_step = find_steps(records, read.capture).of_row >= 0
    return int(records.numpy("kDuration")[of_step | (not in_steps)].sum())


@pytest.mark.long
@pytest.mark.parametrize("form", ["table", "md"])
def test_the_whole_diff_is_as_expected(pair: Pair, form: str, tmp_path: Path) -> None:
    target = tmp_path / f"diff.{'md' if form == 'md' else 'txt'}"
    done = run("diff", "-q", pair.a, pair.b, "-o", target)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    check(f"diff-{pair.name}-{form}", target.read_text("utf-8"))


@pytest.mark.slow
def test_both_sides_of_a_diff_add_up(pair: Pair) -> None:
    rows = run("diff", "-q", "--csv", pair.a, pair.b).rows
    a, b, change = (
        sum(float(row[key] or 0) for row in rows) for key in ("a_ns", "b_ns", "change_ns")
    )
    counted = [total_ns(path, in_steps=pair.steps > 1) / pair.steps for path in (pair.a, pair.b)]
    assert [a, b] == pytest.approx(counted)
    assert change == pytest.approx(b - a)


@pytest.mark.few(2)
@pytest.mark.slow
def test_a_capture_does_not_differ_from_itself(pair: Pair) -> None:
    done = run("diff", "-q", "--csv", pair.a, pair.a, "--fail-if", "time>0")
    rows = done.rows
    assert done.code == 0, done.stderr
    assert rows
    assert {(row["status"], row["change_ns"]) for row in rows} == {("same", "0.0")}
    shown = run("diff", pair.a, pair.a, "-q").stdout
    assert shown.endswith("no op changed by more than 1 %\n")


@pytest.mark.slow
def test_the_whole_markdown_is_as_expected(pair: Pair, tmp_path: Path) -> None:
    target = tmp_path / "net.md"
    printed("export", "-q", pair.a, "-o", target)
    text = target.read_text("utf-8")
    check(f"export-{pair.name}-md", text)
    whole = load(str(pair.a)).rows
    assert f"\n{whole:,} kernels and copies" in text
    *tables, advice = text.split("\n## ")[1:]
    assert advice.startswith("Potential gains")
    sections = [part.splitlines()[4:] for part in tables]
    assert len(sections) >= 2
    for lines in sections:
        rows = [line.split(" | ") for line in lines if line.startswith("| ")]
        calls = sum(int(row[1].replace(",", "")) for row in rows)
        assert calls == whole if len(rows) < 20 else calls <= whole
