"""`pyprof prof --json`: rows, groups, one row explained, nvprof's tables."""

import csv
import io
import json
from pathlib import Path

import pytest

from pyprof.prof.columns.standard import COLUMNS
from tests.analysis.captured import HOSTILE, capture
from tests.answers.checked import ask, checked
from tests.commands import run


def test_rows_are_those_of_csv(tmp_path: Path) -> None:
    """Every column of every row: numbers unformatted, unknown null, several numbers a list."""
    a = capture(tmp_path / "a.sqlite", steps=2)
    names = ",".join(COLUMNS)
    text = run("prof", a, "-q", "--csv", "--raw", "-c", names).stdout
    header, *rows = csv.reader(io.StringIO(text))
    answer = ask("prof", a, "-c", names)
    assert header == [COLUMNS[column["column"]].header for column in answer["columns"]]
    keys = [column["key"] for column in answer["columns"]]
    for given, expected in zip(answer["rows"], rows, strict=True):
        assert [*given] == keys
        assert [_spelt(value) for value in given.values()] == [_number(text) for text in expected]


def _spelt(value: object) -> object:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else _number(str(value))


def _number(text: str) -> object:
    try:
        return pytest.approx(float(text), rel=1e-3)
    except ValueError:
        return text


def test_every_row_has_its_number_and_reason(tmp_path: Path) -> None:
    """`idx` and `why` come with any columns; the answer says how many rows were left out."""
    a = capture(tmp_path / "a.sqlite")
    answer = ask("prof", a, "-c", "kernel,flops", "--sort", "sil", "--top", "2")
    assert [*answer["rows"][0]] == ["idx", "kernel", "flops", "why"]
    assert (answer["row_count"], answer["rows_left_out"]) == (5, 3)
    (nobody,) = [row for row in ask("prof", a)["rows"] if row["kernel"] in HOSTILE]
    assert (nobody["flops"], nobody["why"]) == (None, "no marker")
    (again,) = ask("prof", a, "--where", f"idx={nobody['idx']}")["rows"]
    assert again == nobody


@pytest.mark.slow
def test_groups_by_column_and_by_op_and_shape(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    by_op = ask("prof", a, "--by", "op")
    assert by_op["by"] == "op"
    assert sum(row["total_ns"] for row in by_op["rows"]) == by_op["known_cost"]["total_ns"]
    assert ask("prof", a, "--by", "op", "--top", "1")["rows_left_out"] == len(by_op["rows"]) - 1
    by_params = ask("prof", a, "--by", "params")
    assert {row["op"] for row in by_params["rows"]} == {row["op"] for row in by_op["rows"]}


def test_a_capture_without_rows_has_an_answer(tmp_path: Path) -> None:
    assert ask("prof", capture(tmp_path / "a.sqlite"), "--where", "sil>1e9")["rows"] == []


@pytest.mark.slow
def test_row_numbers_continue_over_several_captures(tmp_path: Path) -> None:
    files = [capture(tmp_path / f"net.rank{n}.sqlite") for n in (0, 1)]
    answer = ask("prof", *files, "--where", "op=relu")
    assert [row["idx"] for row in answer["rows"]] == [1, 3, 6, 8]
    assert answer["row_count"] == 10


@pytest.mark.long
def test_a_row_of_a_set_is_found_by_its_number(tmp_path: Path) -> None:
    files = [capture(tmp_path / f"net.rank{n}.sqlite", slower=n + 1) for n in (0, 1)]
    every = ask("prof", *files)["rows"]
    for row in (every[0], every[4], every[9]):
        answer = ask("prof", *files, "--where", f"idx={row['idx']}")
        assert answer["rows"] == [row]
        assert answer["known_cost"]["total_ns"] == row["sil_ns"]
        assert bool(answer["known_cost"]["unknown"]) == (row["flops"] is None)
    call = ask("prof", *files, "-c", "opid", "--where", "idx=8")["rows"][0]["opid"]
    assert [row["idx"] for row in ask("prof", *files, "--where", f"opid={call}")["rows"]] == [8]


def test_a_row_is_explained(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    answer = ask("prof", a, "--explain", "1")
    lines = [
        line
        for section in answer["sections"]
        for line in (section["title"], *(f"  {line}" for line in section["lines"]))
    ]
    assert "".join(f"{line}\n" for line in lines) == run("prof", a, "--explain", "1").stdout
    assert answer["row_id"] == 1


def test_output_forms_exclude_each_other(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    assert run("prof", a, "--json", "--csv").code == 2
    assert run("prof", a, "--json", "-w", "100").code == 2
    assert run("prof", a, "--json", "-o", tmp_path / "x.csv").code == 2
    assert run("prof", a, "-o", tmp_path / "x.json").code == 0
    assert checked((tmp_path / "x.json").read_bytes()) == ask("prof", a)


def test_a_row_is_a_line(tmp_path: Path) -> None:
    """So that large answers can be read in pieces."""
    text = run("prof", capture(tmp_path / "a.sqlite"), "--json", "-q").stdout
    rows = [line for line in text.splitlines() if line.startswith("    {")]
    assert [json.loads(row.rstrip(","))["idx"] for row in rows[-5:]] == [1, 2, 3, 4, 5]
