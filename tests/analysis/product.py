"""A product with known counters: captures, and files of ncu."""

from dataclasses import replace
from pathlib import Path

from pyprof.marker import Call, Tensor, encode_op
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.capture_files.ncu import Profiled, ncu_csv
from tests.commands import run

GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
SIZE = 1024
X = Tensor((SIZE, SIZE), "float16")
OP = encode_op(Call("torch", "mm", (X, X)))
MIN_BYTES = 3 * SIZE * SIZE * 2
FLOPS = 2 * SIZE**3
STEPS = 4


def capture(path: Path, kernel: str = GEMM, more: object = None) -> Path:
    """Write steps of one product of 10 microseconds."""
    work, ranges = [], []
    for step in range(STEPS):
        at = 100_000 * (step + 1)
        work.append(Work(kernel, (at + 1000, at + 11_000), (at + 100, at + 200)))
        ranges += [Range(OP, (at, at + 500)), Range("step", (at - 10, at + 50_000))]
    layout = LAYOUTS["2024.6"]
    return nsys_db(path, work, ranges, replace(layout, more=more) if more else layout)  # type: ignore[arg-type]


def counters(path: Path, factor: float = 2.0, kernel: str = GEMM, **more: float) -> Path:
    metrics = {"dram__bytes.sum": factor * MIN_BYTES, "sm__inst_executed_pipe_tensor.sum": 4096.0,
               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 61.0,
               "sm__cycles_elapsed.avg.per_second": 1.095e9, **more}  # fmt: skip
    return ncu_csv(path, [Profiled(kernel, metrics=metrics)] * STEPS)


def measured(folder: Path, **more: float) -> tuple[Path, Path]:
    """Write counters, and the capture that they are of."""
    return counters(folder / "ncu.csv", **more), capture(folder / "a.sqlite")  # type: ignore[arg-type]


def parsed(folder: Path) -> Path:
    """Write a Parquet file that holds counters, beside its capture, `a.sqlite`."""
    counted, net = measured(folder)
    target = folder / "a.parquet"
    assert run("parse", "-q", "--with", counted, net, "-o", target).code == 0
    return target


TIMES = [*range(5_000, 600_000, 5_000)]
