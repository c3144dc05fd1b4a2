"""Rows with impossible times in every report: shown without a time, and in no sum."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

import pyprof
from tests import damage
from tests.commands import run
from tests.conftest import long_except
from tests.damage import Truth

TRUTH = Truth(tuple((10**9 + n * 50_000, 10**9 + n * 50_000 + 9_000 + n) for n in range(9)))
WRONG = (2, 5, 8)
TOTAL_NS = TRUTH.total_ns(WRONG)


@pytest.fixture(params=long_except(["sqlite", "parquet"], "parquet"))
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a capture of nine kernels of three names, one name of them without any time."""
    path = damage.nsys(tmp_path / "net.sqlite", TRUTH)
    damage.spans(path, "nsys", "end 0", WRONG)
    if request.param != "sqlite":
        target = tmp_path / f"net.{request.param}"
        assert run("parse", path, "-o", target).code == 0
        return target
    return path


@pytest.mark.slow
def test_rows_are_without_a_time_and_say_why(capture: Path) -> None:
    """Empty in CSV, `-` in text, <NA> in the frame; one warning."""
    done = run("prof", "--csv", "-c", "idx,sil,end,tflops,eff,why", capture)
    rows = done.rows
    assert [row["Sil(ns)"] for row in rows] == [
        "" if place in WRONG else str(end - start)
        for place, (start, end) in enumerate(TRUTH.kernels)
    ]
    for place in WRONG:
        assert [rows[place][name] for name in ("End(ns)", "TFLOP/s", "Eff(%)")] == ["", "", ""]
        assert "no time" in rows[place]["Why"]
    assert done.stderr.count("3 of 9 rows of GPU work have impossible times") == 1
    frame = pyprof.load(capture)
    assert frame["sil"].isna().sum() == 3
    assert frame["sil"].sum() == TOTAL_NS


def test_groups_count_them_and_add_up_the_others(capture: Path) -> None:
    """Mean and minimum are of known times; a group without any has none."""
    rows = run("prof", "--csv", "--by", "kernel", capture).rows
    found = {row["Kernel"]: row for row in rows}
    assert {name: row["Calls"] for name, row in found.items()} == {
        "kernel_0": "3", "kernel_1": "3", "kernel_2": "3"
    }  # fmt: skip
    assert [found["kernel_2"][name] for name in ("Total(ns)", "Mean(ns)", "Min(ns)")] == [""] * 3
    known = [end - start for start, end in TRUTH.kernels[::3]]
    assert found["kernel_0"]["Total(ns)"] == str(sum(known))
    assert found["kernel_0"]["Min(ns)"] == str(min(known))
    assert float(found["kernel_0"]["Share(%)"]) == pytest.approx(100 * sum(known) / TOTAL_NS, 1e-3)


def test_nvprofs_tables_add_up_the_others(capture: Path) -> None:
    rows = [
        row
        for row in run("prof", "--summary", "nvprof", "--csv", capture).rows
        if row["Type"] != "API calls"
    ]
    assert sum(int(row["Time(ns)"] or 0) for row in rows) == TOTAL_NS
    assert {row["Name"]: row["Calls"] for row in rows} == {f"kernel_{n}": "3" for n in range(3)}
    assert "-" in run("prof", "--summary", "nvprof", capture).stdout


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "command",
    [*("summary", "lines", "roofline", "report -o x.html", "export -o x.speedscope.json"),
     *("export -o x.pt.trace.json", "export -o x.md", "export -o x.csv", "export -o x.pstats")],
)  # fmt: skip
def test_every_report_is_made(
    command: str, capture: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*command.split(), capture)
    assert done.code == 0, done.stderr
    assert done.stderr.count("have impossible times") == 1
    for name in ("-8", "nan", "-1 "):
        assert f" {name}" not in done.stdout


def test_a_timeline_of_them_has_events_of_no_length(capture: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.pt.trace.json"
    assert run("export", capture, "-o", target).code == 0
    events = [e for e in json.loads(target.read_text())["traceEvents"] if e.get("cat") == "kernel"]
    assert len(events) == 9
    assert sum(round(1000 * event["dur"]) for event in events) == TOTAL_NS
    assert min(event["ts"] for event in events) > 0


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["start", "end"])
def test_the_sentinel_of_a_missing_time_is_a_missing_time(name: str, tmp_path: Path) -> None:
    """The minimum of 64 bits, which no capture and no sum of times can hold."""
    damage.nsys(tmp_path / "net.sqlite", TRUTH)
    path = tmp_path / "net.dict"
    assert run("parse", tmp_path / "net.sqlite", "-o", path).code == 0
    first, second, *lines = path.read_text().splitlines()
    second = re.sub(rf'"{name}": \d+', f'"{name}": {-(2**63)}', second)
    path.write_text("\n".join([first, second, *lines]) + "\n")
    for command in (("summary", path), ("ranks", path, tmp_path / "net.sqlite")):
        done = run(*command)
        assert done.code == 0, done.stderr
        assert "1 of 9 rows of GPU work have impossible times" in done.stderr
    assert pyprof.load(path)["sil"].isna().sum() == 1


def test_idle_time_is_that_of_the_others(tmp_path: Path) -> None:
    path = damage.nsys(tmp_path / "net.sqlite", TRUTH)
    damage.spans(path, "nsys", "end 0", WRONG)
    records = pyprof.load(path)
    assert records["gap"].dropna().between(0, 100_000).all()
    start, end = records["start"], records["end"]
    assert pd.notna(start).all()
    assert int((end - start).sum()) == TOTAL_NS


@pytest.mark.slow
def test_two_sides_are_compared(capture: Path, tmp_path: Path) -> None:
    done = run("diff", capture, capture)
    assert done.code == 0, done.stderr
    whole = damage.nsys(tmp_path / "whole.sqlite", TRUTH)
    assert run("diff", capture, whole).code == 0
    ranks = [tmp_path / f"rank{rank}{capture.suffix}" for rank in range(2)]
    for rank in ranks:
        rank.write_bytes(capture.read_bytes())
    for command in (("prof", "--by", "op"), ("summary",), ("ranks",)):
        done = run(*command, *ranks)
        assert (done.code, "have impossible times" in done.stderr) == (0, True)
