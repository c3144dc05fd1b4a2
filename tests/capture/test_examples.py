"""The examples, captured on the CPU: every row says what it is, as far as it can be known."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")

import pyprof  # noqa: E402 - torch is needed for it
from pyprof.capture import in_process  # noqa: E402
from pyprof.capture.request import Request  # noqa: E402
from pyprof.capture.script import Target  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

ROOT = Path(__file__).parents[2]
PRODUCTS = {"conv2d", "linear", "__matmul__"}
SUMS = {"aten::add", "aten::add_", "aten::sum"}
"""Sums of gradients belong to the op, too, but torch's counter leaves them out."""

LOOSE = {
    "lenet": {"ones_like", "step"},
    "transformer": {"square", "mean", "ones_like"},
    "resnet_amp": {"cross_entropy", "ones_like"},
    "inference": set(),
    "user_annotation": set(),
    "custom_function": {"forward", "backward", "sum", "ones_like"},
    "custom_module": {"ones", "sum", "ones_like", "AccumulateGrad"},
}
"""Ops that the script calls outside of any module: its loss, the first gradient, the optimizer."""
UNPLACED = {"AccumulateGrad"}
"""Autograd's own work: no line of the script calls it."""
CREATES = {"ones"}
"""Ops that take no tensor."""


def capture(name: str, folder: Path) -> pd.DataFrame:
    """Capture an example in this process and give its rows."""
    path = str(ROOT / "examples" / f"{name}.py")
    outcome = in_process.run(Request(Target(path), str(folder / name)))
    assert outcome.code == 0
    assert outcome.path is not None
    rows: pd.DataFrame = pyprof.load(outcome.path)
    return rows


@pytest.mark.parametrize("name", LOOSE)
def test_rows(name: str, tmp_path: Path) -> None:
    """Every row has op, a line of the example, layer and shapes; the exceptions are named."""
    rows = capture(name, tmp_path)
    assert len(rows)
    assert rows["op"].notna().all()
    placed = rows[~rows["op"].isin(UNPLACED)]
    assert placed["line"].str.contains(rf"{name}\.py:\d+$", na=False).all()
    assert set(rows.loc[rows["layer"].fillna("") == "", "op"]) == LOOSE[name]
    assert rows.loc[~rows["op"].isin(CREATES), "sizes"].notna().all()


@pytest.mark.parametrize("name", ["lenet", "transformer", "resnet_amp"])
def test_backward_pairs_with_forward(name: str, tmp_path: Path) -> None:
    """Products go back on the line and in the layer that they came from, each of them."""
    rows = capture(name, tmp_path)
    products = rows[rows["op"].isin(PRODUCTS)]
    places = {
        way: set(map(tuple, found[["op", "line", "layer"]].to_numpy()))
        for way, found in products.groupby("dir")
    }
    assert places["fprop"]
    assert places["bprop"] == places["fprop"]


@contextmanager
def counted() -> Iterator[list[int]]:
    """Let torch's counter count what `pyprof.profile()` encloses."""
    totals: list[int] = []

    @contextmanager
    def count() -> Iterator[None]:
        with flop_counter.FlopCounterMode(display=False) as counter:
            yield
        totals.append(counter.get_total_flops())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyprof, "profile", count)
        patch.setattr(pyprof, "init", lambda **_: None)
        patch.setattr(sys, "argv", ["example"])
        yield totals


@pytest.mark.parametrize("name", ["lenet", "transformer", "resnet_amp", "inference"])
def test_flops(name: str, tmp_path: Path) -> None:
    """The FLOPs of products are those that torch's counter counts of the same range."""
    rows = capture(name, tmp_path)
    products = rows[rows["op"].isin(PRODUCTS) & ~rows["kernel"].isin(SUMS)]
    with counted() as totals:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert totals[0] > 0
    assert products["flops"].sum() == totals[0]


def in_a_process(folder: Path, *command: str) -> None:
    """Capture in a process of its own, and see it end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    capture_it = ["-m", "pyprof.capture", "--tool", "torch", "-o", str(folder / "net")]
    done = subprocess.run(
        [sys.executable, *command[:-1], *capture_it, str(ROOT / "examples" / command[-1])],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_ddp(tmp_path: Path) -> None:
    """Each rank writes a file; products have it all, and the reduction is there with its size.

    The reducer's own copies run in C++ behind the backward pass: they have no line and no layer.
    """
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    in_a_process(tmp_path, *launcher, "ddp.py")
    for rank in (0, 1):
        rows = pyprof.load(tmp_path / f"net.rank{rank}.pt.trace.json.gz")
        assert set(rows["rank"]) == {rank}
        products = rows[rows["op"] == "linear"]
        assert list(products["dir"]) == ["fprop", "bprop"]
        assert products["line"].str.contains("ddp.py", na=False).all()
        assert set(products["layer"]) == {"DistributedDataParallel:module"}
        assert products["flops"].sum() == 2 * (2 * 8 * 16 * 4)
        reduced = rows[rows["kernel"] == "c10d::allreduce_"]
        assert [[list(shape) for shape in sizes] for sizes in reduced["sizes"]] == [[[16 * 4 + 4]]]


def test_compiled(tmp_path: Path) -> None:
    """The products that Inductor left to torch have it all; the fused kernel has its layer.

    What a fused kernel of the CPU computed is not in the trace: its FLOPs are unknown, not zero.
    """
    in_a_process(tmp_path, "compiled.py")
    rows = pyprof.load(tmp_path / "net.pt.trace.json.gz")
    assert (rows["layer"] == "OptimizedModule").fillna(value=False).all()
    products = rows[rows["kernel"] == "aten::addmm"]
    assert products["flops"].sum() == 2 * 8 * (16 * 32 + 32 * 4)
    assert products["line"].str.contains("compiled.py", na=False).all()
    assert products["sizes"].notna().all()
    fused = rows[rows["kernel"].str.contains("fused_gelu")]
    assert len(fused) == 1
    assert fused["flops"].isna().all()
