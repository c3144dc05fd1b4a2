"""The examples, captured on the CPU: every row is attributed as far as possible."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")

import pandas as pd

import pyprof
from pyprof.capture.kineto import torch_profiler
from pyprof.capture.request import Request
from pyprof.capture.script import Target
from tests import forks
from tests.conftest import long_except
from tests.known import known

ROOT = Path(__file__).parents[2]
PRODUCT = r"aten::(?:\w*conv\w*|\w*mm|matmul|linear)$"
"""Kernels whose FLOPs torch's counter knows."""

FIRST = {"ones_like"}
"""The first gradient, that of the loss."""
BUCKETS = {"allreduce_", "copy_bucket_to_grad"}
"""DDP's work on the gradients of many parameters at once."""
LOOSE: dict[str, set[str]] = {
    "lenet": {"SGD.step", *FIRST},
    "transformer": {"square", "mean", *FIRST},
    "resnet_amp": {"cross_entropy", *FIRST},
    "inference": set(),
    "user_annotation": set(),
    "custom_module": {"ones", "sum", *FIRST},  # it makes its input on the way
    "simple": {"Adam.step", "sum", *FIRST},
    "jit": set(),
    "compiled": {"square", "mean", *FIRST},
    "ddp": {"sum", *FIRST, *BUCKETS},
    "imagenet": {"rand", "stack", "cross_entropy", "SGD.step", *FIRST},
    "slow": {"cross_entropy", "Adam.step", *FIRST},
    "fast": {"cross_entropy", "Adam.step", *FIRST},
}
"""The ops without a layer in each example: its loss, computed outside of any module, the
optimizer's step, and what is named above."""
NO_MODULES = ("custom_function", "operators")
"""Examples that have no layers at all."""
UNCOUNTED = {"operators": {"__getitem__"}}
"""Ops whose FLOPs follow from values, which are never read: a[mask]."""

FAST = ("lenet", "transformer", "simple", "custom_module", "operators")
"""They show what the others do, some of which are slow to capture."""
TRAINING = long_except(["lenet", "transformer", "resnet_amp", "simple", "imagenet", "ddp"], *FAST)
RANKS = 2
EXAMPLES = [
    *long_except([*(name for name in LOOSE if name != "compiled"), *NO_MODULES], *FAST),
    pytest.param("compiled", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Captured:
    return Captured(tmp_path_factory.mktemp("captures"))


class Captured:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, pd.DataFrame] = {}

    def __call__(self, name: str) -> pd.DataFrame:
        """Return the rows of an example; of DDP, those of the first rank."""
        if name not in self._rows:
            self._rows[name] = pyprof.load(self._capture(name))
        return self._rows[name]

    def rank(self, rank: int) -> pd.DataFrame:
        self("ddp")
        rows: pd.DataFrame = pyprof.load(self._folder / f"ddp.rank{rank}.pt.trace.json.gz")
        return rows

    def _capture(self, name: str) -> Path:
        output = self._folder / name
        if name == "ddp":
            launcher = ["-m", "torch.distributed.run", "--standalone"]
            in_a_process(output, *launcher, "--nproc-per-node", str(RANKS))
            return output.with_name("ddp.rank0.pt.trace.json.gz")
        if name == "compiled":
            in_a_process(output)
            return output.with_name("compiled.pt.trace.json.gz")
        path = str(ROOT / "examples" / f"{name}.py")
        outcome = torch_profiler.run(Request(Target(path), str(output)))
        assert outcome.code == 0
        return known(outcome.path)


def in_a_process(output: Path, *launcher: str) -> None:
    """Capture in a process of its own, and check that it succeeds."""
    script = str(ROOT / "examples" / f"{output.name}.py")
    capture_it = ["-m", "pyprof.capture", "--tool", "torch", "-o", str(output), script]
    if output.name == "compiled":  # in a fork, Dynamo was there before the layers were marked
        command = [sys.executable, *capture_it]
        done: forks.Done | subprocess.CompletedProcess[str] = subprocess.run(
            command, capture_output=True, text=True, check=False
        )
    else:
        done = forks.python(*launcher, *capture_it)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_row_of_an_example_is_attributed(captured: Captured, name: str) -> None:
    rows = captured(name)
    assert len(rows)
    assert rows["op"].notna().all()
    assert rows["dir"].notna().all()
    assert rows["line"].str.contains(rf"\b{name}\.py:\d+$", na=False).all()
    assert rows["sizes"].notna().all()
    # Not every build of torch has such a row: some show what it calls.
    assert set(rows.loc[rows["flops"].isna(), "op"]) <= UNCOUNTED.get(name, set())
    loose = rows["layer"].fillna("") == ""
    assert set(rows.loc[loose, "op"]) == (set(rows["op"]) if name in NO_MODULES else LOOSE[name])


def test_every_example_is_captured() -> None:
    """Except the one that queries a capture, and the one that needs a GPU."""
    there = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert there - {"analysis", "cuda_graph"} == {*LOOSE, *NO_MODULES}


@pytest.mark.parametrize("name", TRAINING)
def test_backward_pairs_with_forward(captured: Captured, name: str) -> None:
    rows = captured(name)
    products = rows[rows["kernel"].str.contains(PRODUCT)]
    calls = {
        way: Counter(map(tuple, found[["op", "line", "layer"]].to_numpy()))
        for way, found in products.drop_duplicates(["dir", "seq"]).groupby("dir")
    }
    assert calls["fprop"]
    assert calls["bprop"] == calls["fprop"]


@pytest.mark.long
def test_the_backward_pass_of_a_compiled_module(captured: Captured) -> None:
    """It is one node: its kernels have the line and layer of the module's call."""
    rows = captured("compiled")
    compiled = rows[rows["layer"] == "OptimizedModule"]
    assert set(compiled["dir"]) == {"fprop", "bprop"}
    assert len(set(compiled["line"])) == 1
    fused = compiled[compiled["kernel"].str.contains("cpp_fused")]
    assert set(fused["dir"]) == {"fprop", "bprop"}
    assert fused["op"].str.startswith("cpp_fused_").all()


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count what `pyprof.profile()` encloses by torch's counter, with nothing compiled."""
    totals: list[int] = []

    @contextmanager
    def count() -> Iterator[None]:
        with flop_counter.FlopCounterMode(display=False) as counter:
            yield
        totals.append(counter.get_total_flops())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyprof, "profile", count)
        patch.setattr(pyprof, "init", lambda **_: None)
        patch.setattr(torch, "compile", lambda model: model)
        patch.setattr(sys, "argv", ["example"])
        yield totals


@pytest.mark.slow
@pytest.mark.parametrize("name", long_except([*FAST, "resnet_amp", "inference", "jit"], *FAST))
def test_flops_of_products_equal_torchs_counter(captured: Captured, name: str) -> None:
    rows = captured(name)
    products = rows[rows["kernel"].str.contains(PRODUCT)]
    with counted() as totals:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert [products["flops"].sum()] == totals


@pytest.mark.long
def test_each_rank_writes_a_file_with_the_reduction(captured: Captured) -> None:
    for rank in range(RANKS):
        rows = captured.rank(rank)
        assert set(rows["rank"]) == {rank}
        reduced = rows[rows["kernel"] == "c10d::allreduce_"]
        assert list(reduced["dir"]) == ["comm"]
        assert [[list(shape) for shape in sizes] for sizes in reduced["sizes"]] == [[[16 * 4 + 4]]]
        assert set(rows.loc[rows["op"].isin({*BUCKETS, "mul_out"}), "dir"]) == {"comm", "bprop"}
