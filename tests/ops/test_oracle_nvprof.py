"""What the original PyProf printed for 160 kernels of a V100, beside what these formulas say.

The capture's author ran a PyProf of early 2020 (`lm.csv`). Each row that it could do is equal, or
the original's error is named here.
"""

from __future__ import annotations

import ast
import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyprof import marker, ops

if TYPE_CHECKING:
    from pyprof.marker import Call

FOLDER = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures" / "nvprof-v100-apex"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the shared captures are absent")

FLOPS_ERRORS = {
    "__add__": "half of all operands' elements, not one a result: wrong where one is broadcast",
    "add_": "half of all operands' elements; x + alpha * y is two operations",
    "log_softmax": "0: not modelled then",
    "dropout": "5 an element; comparing, masking and scaling are 3, backward 2",
    "embedding": "0: the backward's additions left out",
}
BYTES_ERRORS = {
    "norm": "the result is not written: 4 bytes short",
    "bias": "the bias itself is not read: 4 bytes an output feature short",
    "linear": "M N + M K + N K s: only the last term is multiplied by the element size",
    "log_softmax": "3 and 5 passes over the data, where 2 and 3 are enough",
    "dropout": "the mask is neither written nor read: a byte an element short",
    "embedding": "the backward writes the table's whole gradient",
    "__add__": "equal",
}
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


def _cost(line: dict[str, Any], call: Call) -> ops.Cost:
    return ops.cost(call, line["dir"], gemm_kernels=1)


def test_every_row_of_the_original_that_had_a_marker_is_compared() -> None:
    """The comparison below is not an empty one."""
    assert len(_rows()) == 160
    assert len(_modelled()) >= 75
    assert {row["Op"] for _, row, _ in _modelled()} == {
        *("embedding", "__mul__", "__add__", "dropout", "linear", "bias", "relu", "log_softmax"),
        *("norm", "mul_", "add_"),
    }


def test_flops_equal_the_original_or_its_error_is_named() -> None:
    """One kernel an op call: the call's FLOPs are the kernel's."""
    for line, row, call in _modelled():
        found = _cost(line, call)
        equal = found.flops == round(float(row["FLOPs"]))
        assert equal or row["Op"] in FLOPS_ERRORS, (row, found)


def test_bytes_equal_the_original_or_its_error_is_named() -> None:
    """The original's bytes, where it multiplied and counted right."""
    for line, row, call in _modelled():
        found = _cost(line, call)
        equal = found.bytes == int(row["Bytes"])
        assert equal or row["Op"] in BYTES_ERRORS, (row, found)


def test_the_named_errors_are_the_arithmetic_that_the_original_did() -> None:
    """Each named error reproduces the original's number, so that it is an error and no excuse."""
    for line, row, call in _modelled():
        found, bytes_, flops = _cost(line, call), int(row["Bytes"]), float(row["FLOPs"])
        params = found.params
        if row["Op"] == "norm":
            assert found.bytes == bytes_ + 4
        if row["Op"] == "linear":
            m, n, k = (int(str(params[name])) for name in "MNK")
            terms = (m * n, m * k, n * k)
            assert bytes_ in {sum(terms) + 3 * term for term in terms}
        if row["Op"] in ("__add__", "add_"):
            assert flops == bytes_ / 4 / 2
        if row["Op"] == "log_softmax":
            elements = 35 * 20 * 33278
            assert bytes_ == 4 * elements * (3 if line["dir"] == "fprop" else 5)
            assert found.bytes == 4 * elements * (2 if line["dir"] == "fprop" else 3)


def test_every_forward_marker_has_a_cost() -> None:
    """No marker is beyond the formulas, but attention as a whole and `backward`."""
    unknown = set()
    for line, _, _ in _rows():
        for text in line["marker"]:
            call = marker.decode_op(text)
            assert call is not None
            if ops.cost(call).flops is None:
                unknown.add(call.op)
    assert unknown == {"multi_head_attention_forward", "backward"}
