"""The two tables of nvprof."""

from pathlib import Path

import pytest

from tests.builders import nsys_db
from tests.commands import run
from tests.commands.test_prof import WORK


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a capture of two products, a multiplication, a copy, and another kernel."""
    return nsys_db(tmp_path / "net.sqlite", WORK)


def test_nvprofs_tables_add_up(path: Path) -> None:
    """--summary nvprof: GPU activities and API calls, each 100 % on its own."""
    rows = run("prof", "--csv", "--summary", "nvprof", path).rows
    gpu = [row for row in rows if row["Type"] == "GPU activities"]
    api = [row for row in rows if row["Type"] == "API calls"]
    assert [row["Name"] for row in gpu] == [
        *("ampere_h16816gemm_128x64", "void mul_kernel<float>(int)"),
        *("[CUDA memcpy HtoD]", "alone"),
    ]
    assert [row["Time(ns)"] for row in gpu] == ["400", "50", "40", "10"]
    assert gpu[0]["Time(%)"] == "80.00"
    assert (gpu[0]["Calls"], gpu[0]["Avg(ns)"], gpu[0]["Min(ns)"]) == ("2", "200.0", "100")
    assert [(row["Calls"], row["Time(ns)"]) for row in api] == [("5", "50")]
    assert api[0]["Name"].startswith("cudaLaunchKernel")


def test_nvprofs_tables_of_records_lack_api_calls(path: Path, tmp_path: Path) -> None:
    """A warning says so, unless -q."""
    assert run("parse", path, "-o", tmp_path / "net.dict").code == 0
    done, quiet = (run("prof", *q, "--summary=nvprof", tmp_path / "net.dict") for q in ([], ["-q"]))
    assert "no API calls" in done.stderr
    assert (quiet.stderr, quiet.stdout) == ("", done.stdout)


@pytest.mark.parametrize("option", ["--strict=90", "--explain=1", "--gpu=no such card", "--top=3"])
def test_nvprofs_tables_refuse_options_that_they_ignore(option: str, path: Path) -> None:
    done = run("prof", "--summary=nvprof", option, path)
    assert (done.code, done.stdout) == (2, "")
    assert option.partition("=")[0] in done.stderr.split("does not take")[1]
