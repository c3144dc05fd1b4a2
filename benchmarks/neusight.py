"""NeuSight's measurements, float32: ops at one shape on eight cards, and steps of two models.

The files are excerpts of what its authors released with their paper (ASPLOS 2025, MIT licence;
PyTorch 2.1): `neusight_micro_fp32.csv.gz` and `neusight_steps_fp32.csv.gz`.
"""

import ast
import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FLOAT_BYTES = 4
NS_PER_MS = 1e6
_INPUTS_AND_OUTPUT = {
    **dict.fromkeys(("add", "mul", "div"), 3),
    **dict.fromkeys(("addu", "mulu", "divu", "pow", "powu", "relu", "tanh", "gelu"), 2),
    **dict.fromkeys(("softmax", "ln"), 2),
}
"""Tensors of the op's size that it reads and writes; `u`: the other operand is a number. `pow`
ignores its second tensor."""
_FAMILIES = {"linear": "gemm", "bmm": "bmm", "softmax": "softmax", "ln": "norm"}
_OP_FAMILIES = {"Linear": "gemm", "BMM": "bmm", "VECsoftmax": "softmax", "VECln": "norm"}
_MATRICES = ("gemm", "bmm")


class Micro(NamedTuple):
    """One op at one shape on one card."""

    device: str
    family: str
    op: str
    shape: tuple[int, ...]
    """Batch, then M, N, K of products, or the row length of others; `linear` has its M first."""
    flops: float
    bytes: float
    ns: float
    blocks: int


class StepOp(NamedTuple):
    """One op of a step, in the order of the program; a layer's ops once for each layer."""

    name: str
    family: str | None
    """None: of no known size."""
    flops: float
    bytes: float
    ns: float
    """Forward and backward, all layers together."""
    times: int
    """How many layers have it."""


class Step(NamedTuple):
    """One step of a model on one card."""

    model: str
    device: str
    ops: tuple[StepOp, ...]
    ns: float
    compiled_ns: float | None


def micro(folder: Path) -> Iterator[Micro]:
    """Read the micro-benchmarks."""
    shape: tuple[int, ...]
    for row in _rows(folder / "neusight_micro_fp32.csv.gz"):
        b, m, n, k, h = (int(float(row[key] or 0)) for key in "BMNKH")
        op = row["op"]
        family = _FAMILIES.get(op, "pointwise")
        if family in _MATRICES:
            batch = b if family == "bmm" else 1
            flops, elements = 2.0 * batch * m * n * k, batch * (m * k + k * n + m * n)
            shape = (b, m, n, k) if family == "bmm" else (m, b, n, k)
        else:
            flops, elements, shape = 0.0, b * h * _INPUTS_AND_OUTPUT[op], (b, h)
        blocks = math.prod(int(float(row[f"grid_{axis}"] or 0)) for axis in "xyz")
        ns = float(row["latency_ms"]) * NS_PER_MS
        moved = float(FLOAT_BYTES * elements)
        yield Micro(row["device"], family, op, shape, flops, moved, ns, blocks)


def steps(folder: Path) -> Iterator[Step]:
    """Read the steps; ops from the first to the last of layer 0 count for every layer."""
    groups = defaultdict(list)
    for row in _rows(folder / "neusight_steps_fp32.csv.gz"):
        groups[row["model"], row["device"].replace("_", " ")].append(row)
    for (model, device), rows in groups.items():
        inside = [
            at for at, row in enumerate(rows) if "layer_0_" in row["Name"] or "_h_0_" in row["Name"]
        ]
        layers = int(float(rows[0]["layers"]))
        times = [layers if inside[0] <= at <= inside[-1] else 1 for at in range(len(rows))]
        compiled = rows[0]["e2e_compiled_ms"]
        yield Step(
            model,
            device,
            tuple(_step_op(row, count) for row, count in zip(rows, times, strict=True)),
            float(rows[0]["e2e_ms"]) * NS_PER_MS,
            float(compiled) * NS_PER_MS if compiled else None,
        )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def _step_op(row: dict[str, str], times: int) -> StepOp:
    flops = moved = 0.0
    family = None
    for kind, shape in ast.literal_eval(row["FwOps"]):
        family = family or _OP_FAMILIES.get(kind, "pointwise")
        if kind in ("Linear", "BMM"):
            batch, m, k, n = (1, *shape) if kind == "Linear" else shape
            flops += 2.0 * batch * m * k * n
            moved += FLOAT_BYTES * batch * (m * k + k * n + m * n)
        else:
            tensors = shape if isinstance(shape[0], tuple) else (shape, shape)
            moved += FLOAT_BYTES * sum(math.prod(tensor) for tensor in tensors)
    ns = (float(row["fw_latency"]) + float(row["bw_latency"])) * NS_PER_MS * times
    known = row["OpName"] != "getitem" and ns > 0
    return StepOp(row["OpName"], family if known else None, flops, moved, ns, times)
