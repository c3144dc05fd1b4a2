"""Which rows of the original's files, which tell no op calls, belong to one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyprof
from pyprof.prof.calls.op_calls import _period

SHAPE = {"type": "tensor", "shape": (35, 20), "dtype": "float32"}
APPLY, FIRST, SECOND = "kernelPointwiseApply3", "kernelReduceAllPass1", "kernelReduceAllPass2"


def _row(op: str, kernel: str, seq: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as in a file
    """Write a line as the original did: without ids, times and launches."""
    args = [{"name": "", **SHAPE}] * 2
    backward = more.get("dir") == "bprop"
    marker = [] if backward else [repr({"mod": "torch", "op": op, "args": args})]
    return {
        "kShortName": kernel,
        "kDuration": 1000,
        "layer": [],
        "trace": ["net.py:6"],
        "reprMarkers": [],
        "marker": marker,
        "seqMarker": [f"{op}, seq = {seq}"],
        "seqId": [seq],
        "subSeqId": 0,
        "altSeqId": [],
        "dir": "fprop",
        "mod": ["torch"],
        "op": [op],
        "tid": 1,
        "device": 0,
        "stream": 7,
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "kLongName": f"void {kernel}<float>(int)",
        **more,
    }


def _node(node: str, kernel: str, seq: int) -> dict[str, Any]:
    texts = [f"{node.lower()}_backward, seq = 0", f"{node}Backward, seq = {seq}"]
    return _row(node, kernel, seq, dir="bprop", seqMarker=texts)


def _calls(path: Path, rows: list[dict[str, Any]]) -> list[int]:
    """Number the calls that the rows are said to belong to, from 0."""
    path.write_text("".join(f"{row!r}\n" for row in rows))
    found = np.unique(pyprof.load(path)["opid"], return_inverse=True)[1]
    return [int(number) for number in found]


EQUAL = [_row("equal", kernel, 70) for kernel in (APPLY, FIRST, SECOND)]


def test_kernels_of_one_call_are_one_call(tmp_path: Path) -> None:
    """Its cost is charged once; where the names repeat, it was called again."""
    assert _calls(tmp_path / "net.dict", EQUAL) == [0, 0, 0]
    rows = pyprof.load(tmp_path / "net.dict")
    assert rows.flops.sum() == 35 * 20 * 2  # a comparison an element, and as many to combine them
    assert _calls(tmp_path / "net.dict", [*EQUAL, *EQUAL, *EQUAL[:1]]) == [0] * 3 + [1] * 3 + [2]


@pytest.mark.parametrize(
    ("kernels", "calls"),
    [
        ("AAA", [0, 1, 2]),  # as an optimizer's parameters of one size
        ("ABC", [0, 0, 0]),
        ("USDUSDX", [0] * 7),  # a sort in two rounds
        ("USDUSDXUSDUSDX", [0] * 7 + [1] * 7),
        ("ABA", [0, 0, 0]),
        ("ABABA", [0, 0, 1, 1, 2]),
    ],
)
def test_calls_take_turns(tmp_path: Path, kernels: str, calls: list[int]) -> None:
    """Calls of one op with the same texts: where the names of their kernels repeat, so do they."""
    rows = [_row("equal", f"kernel{letter}", 70) for letter in kernels]
    assert _calls(tmp_path / "net.dict", rows) == calls


def test_other_texts_numbers_lines_threads_and_ranks_are_other_calls(tmp_path: Path) -> None:
    other = [
        _row("eq", FIRST, 70),
        _row("eq", SECOND, 71),
        _row("eq", APPLY, 71, trace=["net.py:7"]),
        _row("eq", FIRST, 71, trace=["net.py:7"], tid=2),
        _row("eq", SECOND, 71, trace=["net.py:7"], tid=2, rank=3),
    ]
    assert _calls(tmp_path / "net.dict", [EQUAL[0], *other]) == list(range(6))


def test_a_node_of_autograd_is_one_call(tmp_path: Path) -> None:
    """However often a kernel runs in it; the forward op that took its number as well.

    Ops without a node write that number too, before it.
    """
    forward = [_row("mul", "A", 70), _row("mul", "A", 70)]
    backward = [_node("Mul", "B", 70), _node("Mul", "B", 70)]
    assert _calls(tmp_path / "net.dict", forward) == [0, 1]
    assert _calls(tmp_path / "net.dict", [*forward, *backward]) == [0, 0, 1, 1]
    before = [_row("eq", "A", 70), _row("eq", "A", 70)]
    assert _calls(tmp_path / "net.dict", [*before, *forward, *backward]) == [0, 1, 2, 2, 3, 3]


def test_real_calls_are_those_that_the_capture_tells(captures: Path) -> None:
    """The original's own file, against the database that it was made of."""
    folder = captures / "nvprof-v100-apex"
    inferred = pyprof.load(folder / "net.dict")
    told = pyprof.load(folder / "net.sql")
    told = told[told.kind == "kernel"].reset_index(drop=True)
    assert inferred.kernel.tolist() == told.kernel.tolist()
    numbers = [rows.opid.factorize()[0].tolist() for rows in (inferred, told)]
    assert numbers[0] == numbers[1]
    assert inferred.flops.sum() == told.flops.sum()


@pytest.mark.parametrize("names", ["A", "AA", "AB", "ABAB", "ABA", "ABAC", "AABAAB", "ABCAB", ""])
def test_a_period_is_the_shortest_shift_under_which_names_agree(names: str) -> None:
    codes = [ord(name) for name in names]
    shifts = range(1, len(codes) + 1)
    tried = (p for p in shifts if all(codes[at] == codes[at - p] for at in range(p, len(codes))))
    if codes:
        assert _period(codes) == next(tried)


def test_json_lines_without_ids_are_the_same(tmp_path: Path) -> None:
    """As other tools rewrite the original's files."""
    rows = [*EQUAL, *EQUAL]
    (tmp_path / "net.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = pyprof.load(tmp_path / "net.jsonl")
    assert found.opid.nunique() == 2
