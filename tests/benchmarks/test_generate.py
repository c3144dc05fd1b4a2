"""The pipeline finds what the generator planted."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import commands
from tests.programs import generate

SHAPES = {
    "one process": [],
    "old texts": ["--texts", "old"],
    "four ranks": ["--ranks", "4"],
    "a thread that launches nothing": ["--bystander"],
    "leaked ranges": ["--leaks", "300"],
    "all of it": ["--ranks", "2", "--bystander", "--leaks", "30", "--texts", "old"],
}


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in commands.printed("parse", "-q", path).splitlines()]


@dataclass(frozen=True)
class Run:
    """A capture, what is in it, and what the two commands made of it."""

    truth: dict[str, int]
    ranks: int
    records: list[dict[str, Any]]
    rows: list[dict[str, str]]


@pytest.fixture(scope="module", params=list(SHAPES.values()), ids=list(SHAPES))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    options: list[str] = request.param
    path = tmp_path_factory.mktemp("generated") / "net.sqlite"
    truth = generate(path, "--kernels", "150", *options)
    ranks = int(options[1]) if options[:1] == ["--ranks"] else 1
    columns = "dir,op,layer,line,kernel,flops"
    rows = commands.run("prof", "-q", "--csv", "-c", columns, str(path)).rows
    return Run(truth, ranks, _records(path), rows)


@pytest.mark.few(2)
def test_every_generated_activity_comes_out_once(run: Run) -> None:
    """With every nanosecond, in GPU-start order."""
    kernels = [record for record in run.records if record["kind"] == "kernel"]
    found = {
        "activities": len(run.records),
        "gpu_ns": sum(record["kDuration"] for record in run.records),
        "kernels": len(kernels),
        "kernel_ns": sum(record["kDuration"] for record in kernels),
    }
    assert len(kernels) >= 150
    assert found == {name: run.truth[name] for name in found}
    starts = [record["start"] for record in run.records]
    assert starts == sorted(starts)


@pytest.mark.few(2)
def test_generated_linears_have_their_flops(run: Run) -> None:
    """Forward and backward, shared among kernels without loss."""
    flops = sum(int(row["FLOPs"]) for row in run.rows if row["Op"] == "linear")
    assert flops == run.truth["linear_flops"]


@pytest.mark.few(2)
def test_every_kernel_finds_its_op(run: Run) -> None:
    """Leaked and unrelated ranges hide no op; a backward kernel has its forward call's layer."""
    found = Counter(
        (row["Direction"], row["Layer"], row["Line"].rpartition("/")[2])
        for row in run.rows
        if "gemm" in row["Kernel"]
    )
    calls = run.truth["steps"] * run.ranks
    assert found == {
        (direction, f"blocks.{block}", line): calls * kernels
        for direction, kernels in (("fprop", 1), ("bprop", 2))
        for block in range(2)
        for line in ("model.py:32", "model.py:34")
    }


def test_the_same_options_write_the_same_rows(tmp_path: Path) -> None:
    """Nothing depends on chance or the clock."""
    contents = []
    for name in ("one.sqlite", "two.sqlite"):
        generate(tmp_path / name, "--kernels", "40", "--ranks", "2")
        with closing(sqlite3.connect(tmp_path / name)) as db:
            contents.append(list(db.iterdump()))
    assert contents[0] == contents[1]


def test_ranks_repeat_their_correlation_ids(tmp_path: Path) -> None:
    """As real processes do."""
    generate(tmp_path / "net.sqlite", "--kernels", "1", "--ranks", "2")
    pids: dict[int, set[int]] = {}
    for record in _records(tmp_path / "net.sqlite"):
        pids.setdefault(record["corrId"], set()).add(record["pid"])
    assert set(map(len, pids.values())) == {2}
