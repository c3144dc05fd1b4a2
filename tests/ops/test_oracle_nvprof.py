"""What the original PyProf printed for 160 kernels of a V100, compared with these formulas.

The capture's author ran a PyProf of early 2020 (`lm.csv`). Each row that it could do is equal, or
the original's error is named here.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from pyprof import marker, ops
from pyprof.marker import Call, Tensor
from tests.conftest import CAPTURES
from tests.known import known

FOLDER = CAPTURES / "nvprof-v100-apex"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the shared captures are absent")


@dataclass(frozen=True)
class Sizes:
    """What the arithmetic of a row is made of, from its call alone: element counts."""

    x: int
    """Elements of the first tensor: those of the result, but for linear and embedding."""
    others: int
    """Elements of the other tensors."""
    rows: int
    """The first tensor's rows: without its last dimension."""
    last: int
    table: tuple[int, ...]
    """The second tensor's shape; () for none."""

    @classmethod
    def of(cls, call: Call) -> Sizes:
        first, *rest = (arg for arg in call.args if isinstance(arg, Tensor))
        last = first.shape[-1]
        table = rest[0].shape if rest else ()
        return cls(first.numel, sum(t.numel for t in rest), first.numel // last, last, table)


Numbers = tuple[float, float]
"""FLOPs and bytes."""


@dataclass(frozen=True)
class Error:
    """Where the original is wrong: what it printed, and what is right."""

    why: str
    original: Callable[[Sizes], Numbers]
    right: Callable[[Sizes], Numbers]


def _linear(s: Sizes, *, backward: bool) -> Numbers:
    m, n, k = s.rows, s.table[0], s.last
    # forward: x, w, bias, y; backward, as one kernel: go, x, dw, and go again with the bias's db
    return 2 * m * n * k, 4 * (m * n + m * k + n * k + n + backward * m * n)


def _linear_as_printed(s: Sizes) -> Numbers:
    m, n, k = s.rows, s.table[0], s.last
    return 2 * m * n * k, m * n + n * k + 4 * m * k


_LINEAR = "M N + N K + M K s: only the last term is multiplied by the element size"
_SUM = "half of all operands' elements and the result's, not one a result"
_SOFTMAX = "0 FLOPs, not modelled then; 3 and 5 passes over the data, where 2 and 3 are enough"
_DROPOUT = "5 an element, not 3 and 2; the mask, a byte an element, neither written nor read"
_EMBEDDING = "0 FLOPs: additions left out; the table's gradient is written whole"
ERRORS = {
    ("__add__", "fprop"): Error(
        _SUM, lambda s: ((2 * s.x + s.others) / 2, 4 * (2 * s.x + s.others)),
        lambda s: (s.x, 4 * (2 * s.x + s.others)),
    ),
    ("add_", "fprop"): Error(
        f"{_SUM}; x + alpha * y is two operations", lambda s: (1.5 * s.x, 12 * s.x),
        lambda s: (2 * s.x, 12 * s.x),
    ),
    ("log_softmax", "fprop"): Error(
        _SOFTMAX, lambda s: (0, 3 * 4 * s.x), lambda s: (24 * s.x, 2 * 4 * s.x)
    ),
    ("log_softmax", "bprop"): Error(
        _SOFTMAX, lambda s: (0, 5 * 4 * s.x), lambda s: (23 * s.x, 3 * 4 * s.x)
    ),
    ("dropout", "fprop"): Error(
        _DROPOUT, lambda s: (5 * s.x, 8 * s.x), lambda s: (3 * s.x, 9 * s.x)
    ),
    ("dropout", "bprop"): Error(
        _DROPOUT, lambda s: (5 * s.x, 8 * s.x), lambda s: (2 * s.x, 9 * s.x)
    ),
    ("norm", "fprop"): Error(
        "the result, 4 bytes, is not written; a root counts as any function does, 20",
        lambda s: (2 * s.x + 1, 4 * s.x), lambda s: (2 * s.x + 20, 4 * s.x + 4),
    ),
    ("bias", "fprop"): Error(
        "the bias itself is not read",
        lambda s: (s.x, 8 * s.x), lambda s: (s.x, 8 * s.x + 4 * s.others),
    ),
    ("linear", "fprop"): Error(
        _LINEAR, _linear_as_printed, lambda s: _linear(s, backward=False)
    ),
    ("linear", "bprop"): Error(
        _LINEAR, _linear_as_printed, lambda s: _linear(s, backward=True)
    ),
    ("embedding", "bprop"): Error(
        _EMBEDDING,
        lambda s: (0, 3 * 4 * s.x * s.table[1]),
        lambda s: (s.x * s.table[1], 8 * s.x + 4 * s.x * s.table[1] + 4 * s.others),
    ),
}  # fmt: skip
UNMODELLED = {"multi_head_attention_forward", "cross_entropy", "layer_norm", "backward", "Split"}


@cache
def _rows() -> list[tuple[dict[str, Any], dict[str, str], Call | None]]:
    """Pair each kernel with the original's row and with the call that it belongs to."""
    lines = [ast.literal_eval(line) for line in (FOLDER / "net.dict").read_text().splitlines()]
    with (FOLDER / "lm.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    return [
        (line, row, _call(line, row, lines[:at]))
        for at, (line, row) in enumerate(zip(lines, table, strict=True))
    ]


def _call(line: dict[str, Any], row: dict[str, str], before: list[dict[str, Any]]) -> Call | None:
    """Take the call that the original took: the outermost marker's op, or its forward's."""
    source = line
    if not line["marker"] and line["dir"] == "bprop":
        wanted = set(line["seqId"]) | set(line["altSeqId"])
        found = [
            e for e in before if e["dir"] == "fprop" and wanted & {*e["seqId"], *e["altSeqId"]}
        ]
        source = found[-1] if found else line
    calls = [call for text in source["marker"] if (call := marker.decode_op(text)) is not None]
    if row["Op"] == "bias":
        return next((call for call in calls if call.op == "__iadd__"), None)
    return calls[0] if calls else None


def _modelled() -> list[tuple[dict[str, Any], dict[str, str], Call]]:
    return [
        (line, row, call)
        for line, row, call in _rows()
        if call is not None and row["Op"] not in UNMODELLED and row["TC"] != "na"
    ]


def test_every_row_of_the_original_that_had_a_marker_is_compared() -> None:
    """So that the comparison below is not empty."""
    assert len(_rows()) == 160
    assert len(_modelled()) >= 75
    assert {row["Op"] for _, row, _ in _modelled()} == {
        *("embedding", "__mul__", "__add__", "dropout", "linear", "bias", "relu", "log_softmax"),
        *("norm", "mul_", "add_"),
    }


def test_each_row_equals_the_original_or_a_known_error_of_it() -> None:
    """Each call has one kernel, so its cost is the kernel's.

    Where the original is wrong, its own arithmetic gives what it printed, and the right one, from
    the shapes, our value.
    """
    used = set()
    for line, row, call in _modelled():
        key = (row["Op"], line["dir"])
        found = ops.cost(call, line["dir"], gemm_kernels=1)
        printed = (float(row["FLOPs"]), int(row["Bytes"]))
        wanted: Numbers = (round(printed[0]), printed[1])
        if (error := ERRORS.get(key)) is not None:
            used.add(key)
            sizes = Sizes.of(call)
            wanted = error.right(sizes)
            # of embedding's two kernels the first, a fill, was given all
            second = line["kShortName"] == "embedding_backward_feature_kernel"
            assert printed == ((0, 0) if second else error.original(sizes)), (row, error.why)
        assert (found.flops, found.bytes) == wanted, (row, found)
    assert used == set(ERRORS)


def test_every_forward_marker_has_a_cost() -> None:
    """Except attention as a whole, and `backward`."""
    unknown = set()
    for line, _, _ in _rows():
        for text in line["marker"]:
            call = known(marker.decode_op(text))
            if ops.cost(call).flops is None:
                unknown.add(call.op)
    assert unknown == {"multi_head_attention_forward", "backward"}
