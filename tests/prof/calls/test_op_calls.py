"""Rows of one op call, also without call ids; nested products are charged once."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pyprof
from pyprof.arrays import MISSING
from pyprof.marker import encode_seq
from pyprof.prof.calls.op_calls import _period, exclusive_totals, nested_products, unknown_inside
from tests.builders import Range, Work, nsys_db

SHAPE = {"type": "tensor", "shape": (35, 20), "dtype": "float32"}
APPLY, FIRST, SECOND = "kernelPointwiseApply3", "kernelReduceAllPass1", "kernelReduceAllPass2"


def _row(op: str, kernel: str, seq: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - as in a file
    """Write a line as the original did: without ids, times and launches."""
    args = [{"name": "", **SHAPE}] * 2
    backward = more.get("dir") == "bprop"
    marker = [] if backward else [repr({"mod": "torch", "op": op, "args": args})]
    named = {"kShortName": kernel, "kDuration": 1000, "kLongName": f"void {kernel}<float>(int)"}
    texts = {"layer": [], "trace": ["net.py:6"], "reprMarkers": [], "marker": marker}
    numbers = {"seqMarker": [f"{op}, seq = {seq}"], "seqId": [seq], "subSeqId": 0, "altSeqId": []}
    call = {"dir": "fprop", "mod": ["torch"], "op": [op], "tid": 1, "device": 0, "stream": 7}
    return {**named, **texts, **numbers, **call, "grid": (1, 1, 1), "block": (32, 1, 1), **more}


def _node(node: str, kernel: str, seq: int) -> dict[str, Any]:
    texts = [f"{node.lower()}_backward, seq = 0", f"{node}Backward, seq = {seq}"]
    return _row(node, kernel, seq, dir="bprop", seqMarker=texts)


def _calls(path: Path, rows: list[dict[str, Any]]) -> list[int]:
    """Number the calls that the rows state, from 0."""
    path.write_text("".join(f"{row!r}\n" for row in rows))
    found = np.unique(pyprof.load(path)["opid"], return_inverse=True)[1]
    return [int(number) for number in found]


EQUAL = [_row("equal", kernel, 70) for kernel in (APPLY, FIRST, SECOND)]


@pytest.mark.slow
def test_kernels_of_one_call_are_one_call(tmp_path: Path) -> None:
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
def test_calls_that_alternate_are_told_apart(
    tmp_path: Path, kernels: str, calls: list[int]
) -> None:
    """Calls of one op with equal texts: each repetition of its kernel names is a new call."""
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


@pytest.mark.slow
def test_a_node_of_autograd_is_one_call(tmp_path: Path) -> None:
    """However many kernels run in it; so is the forward op that took its number.

    Ops without a node write that number too, before it.
    """
    forward = [_row("mul", "A", 70), _row("mul", "A", 70)]
    backward = [_node("Mul", "B", 70), _node("Mul", "B", 70)]
    assert _calls(tmp_path / "net.dict", forward) == [0, 1]
    assert _calls(tmp_path / "net.dict", [*forward, *backward]) == [0, 0, 1, 1]
    before = [_row("eq", "A", 70), _row("eq", "A", 70)]
    assert _calls(tmp_path / "net.dict", [*before, *forward, *backward]) == [0, 1, 2, 2, 3, 3]


@pytest.mark.slow
def test_calls_found_in_the_original_file_are_those_of_its_capture(captures: Path) -> None:
    """The original's own file, against the database that it was made from."""
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


OUTER, INNER = 7, 9  # ids of calls; ids ascend inward


# row 0: inside both calls, works for the inner; row 1: in the outer alone
OFFSETS, MEMBERS = np.array([0, 2, 3]), np.array([OUTER, INNER, OUTER])
CHOSEN, CALL = np.array([INNER, OUTER]), np.array([1, 0])


def test_the_outer_call_is_charged_less() -> None:
    """Two gradients in one call cost 20; one has its own call that costs 8: the other costs 12."""
    pairs = nested_products(OFFSETS, MEMBERS, CHOSEN, CALL, np.array([True, True]))
    assert pairs.tolist() == [[1, 0]]
    for total, rest in (([8, 20], [8, 12]), ([8, MISSING], [8, MISSING]), ([30, 20], [30, 0])):
        assert exclusive_totals(np.array(total), CALL, pairs).tolist() == rest


def test_an_outer_call_less_an_unknown_inner_one_is_unknown() -> None:
    """Of three nested calls the innermost has no known cost: nor has the rest of the outermost."""
    call, pairs = np.array([1, 0, 2, 0]), np.array([[1, 0], [2, 0]])
    total = np.array([MISSING, 20, 8, 20])
    assert exclusive_totals(total, call, pairs).tolist() == [MISSING, MISSING, 8, MISSING]
    assert unknown_inside(total, call, pairs).tolist() == [-1, 1, -1, 1]


def test_only_products_are_subtracted() -> None:
    """A copy inside a convolution has its own cost, and the convolution keeps all of its own."""
    assert not len(nested_products(OFFSETS, MEMBERS, CHOSEN, CALL, np.array([False, True])))


def test_an_outer_call_without_kernels_is_left_alone() -> None:
    """It is charged nothing, so there is nothing to subtract from."""
    offsets, members, chosen = np.array([0, 2]), np.array([OUTER, INNER]), np.array([INNER])
    assert not len(nested_products(offsets, members, chosen, np.array([0]), np.array([True])))


FILTER = [1024, 512, 1, 1]
IMAGE = [32, 512, 14, 14]
GRADIENT = [32, 1024, 7, 7]  # of stride 2, which such a capture does not record
DGRAD, WGRAD = "void cudnn::detail::dgrad_engine<float>", "volta_scudnn_128x64_wgrad_nn_v1"


def _old_node(folder: Path, around: str) -> pd.DataFrame:
    """Load a backward node as torch 1.8 ran it: two calls in one, none with its result's shape."""
    inner = [
        encode_seq(
            f"aten::cudnn_convolution_backward_{name}",
            op_id=2,
            sizes=[[], GRADIENT, shape, [], []],
            dtypes=["", "float32", "float32", "", ""],
        )
        for name, shape in (("input", FILTER), ("weight", IMAGE))
    ]
    ranges = [Range(around, (0, 90)), Range(inner[0], (10, 30)), Range(inner[1], (40, 60))]
    work = [
        Work(DGRAD, (100, 200), (15, 20)),
        Work(WGRAD, (200, 500), (45, 50)),
        Work("my_convolution_kernel", (500, 600), (70, 75)),
    ]
    rows: pd.DataFrame = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    return rows


def _backward(sizes: list[list[int]]) -> str:
    return encode_seq(
        "aten::cudnn_convolution_backward",
        op_id=1,
        sizes=[*sizes, [], []],
        dtypes=[*["float32"] * len(sizes), "", ""],
    )


def test_a_gradient_takes_its_shape_from_the_call_around_it(tmp_path: Path) -> None:
    """2 * 1024 * 512 * 32 * 7 * 7 each; go 1605632 + w 524288 + dx 3211264 elements, and x, dw."""
    rows = _old_node(tmp_path, _backward([IMAGE, GRADIENT, FILTER]))
    assert rows.flops.tolist() == [2 * 1024 * 512 * 32 * 7 * 7] * 2 + [0]
    assert rows.bytes.tolist() == [4 * (1605632 + 524288 + 3211264)] * 2 + [0]


def test_an_unknown_part_leaves_the_rest_unknown_with_a_reason(tmp_path: Path) -> None:
    """A transposed convolution calls the same op, whose result is then not the call's input."""
    transposed = encode_seq(
        "aten::cudnn_convolution_transpose",
        op_id=1,
        sizes=[GRADIENT, FILTER, [], [], [], [], []],
        dtypes=["float32", "float32", "", "", "", "", ""],
        inputs=["", "", "[0, 0]", "[0, 0]", "[1, 1]", "[1, 1]", "1"],
    )
    rows = _old_node(tmp_path, transposed)
    assert rows.flops.tolist() == [2 * 1024 * 512 * 32 * 7 * 7, 0, 0]
    assert rows.bytes.isna().all()
    reason = "self_size not recorded"
    assert rows.why.tolist() == [reason, *[f"inside it: {reason}"] * 2]
