"""Analyse a capture in pandas: the most expensive ops, shares of layers, GEMMs and peaks.

    python examples/analysis.py [FILE]

Without FILE, it generates a small capture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyprof

if TYPE_CHECKING:
    import pandas as pd

GENERATE = Path(__file__).resolve().parents[1] / "benchmarks" / "generate.py"
GEMMS = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm")


def load(arguments: list[str]) -> pd.DataFrame:
    """Load the given capture, or a generated one."""
    if arguments:
        return pyprof.load(arguments[0])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.sqlite"
        command = [sys.executable, GENERATE, path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
        return pyprof.load(path)


def top_ops(frame: pd.DataFrame, count: int = 5) -> pd.DataFrame:
    """Return the most expensive ops: calls, ms and share of GPU time."""
    found = frame.groupby(["op", "dir"], dropna=False)["sil"].agg(kernels="count", ms="sum")
    found["share"] = (100 * found["ms"] / frame["sil"].sum()).round(1)
    found["ms"] = (found["ms"] / 1e6).round(3)
    return found.nlargest(count, "ms")


def share_by_layer(frame: pd.DataFrame) -> pd.Series:
    """Return each layer's share of GPU time in %; <NA> is work outside all layers."""
    time = frame.groupby("layer", dropna=False)["sil"].sum()
    return (100 * time / time.sum()).round(1).sort_values(ascending=False).rename("share")


def gemms(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the TFLOP/s of each GEMM, and the % of its roofline."""
    known = frame[frame["op"].isin(GEMMS) & frame["flops"].gt(0)]
    found = known.groupby(["op", "dir", "params"])[["tflops", "eff"]].mean().round(1)
    return found.sort_values("eff")


def main() -> None:
    """Print the tables."""
    frame = load(sys.argv[1:])
    print("Most expensive ops", top_ops(frame).to_string(), sep="\n", end="\n\n")
    print("Share of layers (%)", share_by_layer(frame).to_string(), sep="\n", end="\n\n")
    print("GEMMs relative to the peak", gemms(frame).to_string(), sep="\n")


if __name__ == "__main__":
    main()
