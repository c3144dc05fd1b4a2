"""Kernels with planted loads, which reports have to find in samples."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builders import LAYOUTS, Layout, Work, nsys_db
from tests.capture_files.metrics import sampled
from tests.capture_files.model import Rows
from tests.commands import run
from tests.readers import kineto_json

LOADS = {"gemm": (80.0, 10.0, 4.0), "copy": (0.0, 55.0, 30.0), "norm": (0.0, 40.0, 8.0)}
"""Planted, by kernel: Tensor Core activity, reads and writes, percent of the peak."""
PEAK = 2_039e9
"""Bytes/s of the device that captures of tests are of."""
INTERVAL_NS = 100_000


def work_of(seed: int = 1, steps: int = 800, us: float = 20.0) -> list[Work]:
    """Return kernels one after the other, each some microseconds long, with gaps between them."""
    rng = np.random.default_rng(seed)
    work, at = [], 5_000
    for _ in range(steps):
        for name in LOADS:
            length = int(us * 1000 * rng.uniform(0.5, 1.5))
            work.append(Work(name, (at, at + length), (at - 1500, at - 1000)))
            at += length + int(rng.uniform(2_000, 9_000))
    return work


def metrics(work: list[Work]) -> dict[str, tuple[list[int], list[float]]]:
    return {
        name: sampled(work, load(place), INTERVAL_NS)
        for place, name in enumerate(("tensor_pct", "read_pct", "write_pct"))
    }


def load(place: int) -> Callable[[Work], float]:
    return lambda piece: LOADS[piece.name][place]


def capture(
    path: Path, work: list[Work], tables: Mapping[str, Rows], layout: str = "2024.6"
) -> Path:
    known: Layout = LAYOUTS[layout]
    return nsys_db(path, work, (), replace(known, more={**known.more, **tables}))


def rows(path: Path, columns: str) -> list[dict[str, str]]:
    return run("prof", "-q", "--csv", "-c", columns, path).rows


COLUMNS = "kernel,sil,tensor,tensorerr,dram,dramerr,tcmeas,clock,via,counter"


def check(rows: list[dict[str, str]]) -> None:
    """Compare with the planted loads: within three standard errors, which are small."""
    for row in rows:
        tensor, read, write = LOADS[row["Kernel"]]
        traffic = (read + write) / 100 * PEAK * float(row["Sil(ns)"]) / 1e9
        error = float(row["DRAM±(%)"]) / 100 * float(row["DRAM(B)"])
        assert abs(float(row["DRAM(B)"]) - traffic) <= 3 * error + 1
        assert error < 0.1 * traffic
        activity = float(row["Tensor(%)"])
        assert activity == pytest.approx(tensor, abs=2)
        assert (row["Via"], row["Counter"]) == ("sampled", "samples")
        assert row["TCm"] in {"gemm": "1", "copy": ("0", ""), "norm": ("0", "")}[row["Kernel"]]


def trace(work: list[Work]) -> list[kineto_json.Event]:
    events = []
    for number, piece in enumerate(work, 1):
        start, end = piece.at
        events.append(kineto_json.launch(number, (start - 1500) / 1000))
        events.append(
            kineto_json.kernel(number, start / 1000, (end - start) / 1000, name=piece.name)
        )
    return events


A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8,
         "computeMinor": 0}  # fmt: skip


def written(path: Path, events: list[kineto_json.Event]) -> Path:
    path.write_text(kineto_json.text(events, deviceProperties=[A100]))
    return path
