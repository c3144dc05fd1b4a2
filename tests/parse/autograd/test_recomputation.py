"""Gradient checkpointing: recomputed ops keep their own names, for both implementations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.marker import encode_layer
from pyprof.parse import parse_file
from tests.builders import Range, Work, nsys_db
from tests.parse.record_lines import parsed

EVALUATE = "autograd::engine::evaluate_function: "
CONV = "aten::conv2d, seq = {seq}, op_id = 5, sizes = [[2, 3, 8, 8], [4, 3, 3, 3]]"
RELU = "aten::relu_, seq = {seq}, op_id = 6, sizes = [[2, 4, 6, 6]]"
THRESHOLD = "aten::threshold_backward, op_id = 8, sizes = [[2, 4, 6, 6], [2, 4, 6, 6], []]"


def _span(text: str, start: int, end: int, tid: int = 12) -> Range:
    return Range(text, (start, end), tid=tid)


def _forward(*, layers: bool, checkpoint: bool) -> list[Range]:
    """A convolution and relu_ of the layers `net`, `net.conv` and `net.relu`, on thread 11."""
    first = 40 if checkpoint else 41
    ranges = [
        _span(CONV.format(seq=first), 110, 150, 11),
        _span(RELU.format(seq=first + 1), 160, 190, 11),
    ]
    if layers:
        ranges += [
            _span(encode_layer("net"), 101, 199, 11),
            _span(encode_layer("net.conv"), 105, 155, 11),
            _span(encode_layer("net.relu"), 156, 195, 11),
        ]
    if checkpoint:
        ranges.append(_span("CheckpointFunction, seq = 40, op_id = 2", 103, 197, 11))
    return ranges


def _rerun(start: int, *, seq: int, layers: bool) -> list[Range]:
    """Run both ops again from `start` on, on the thread of the backward pass."""
    ranges = [
        _span(CONV.format(seq=seq), start + 10, start + 50),
        _span(RELU.format(seq=seq + 1), start + 60, start + 90),
    ]
    if layers:
        ranges += [
            _span(encode_layer("net.conv"), start + 5, start + 55),
            _span(encode_layer("net.relu"), start + 56, start + 95),
        ]
    return ranges


def _not_reentrant(*, layers: bool) -> list[Range]:
    """relu_'s node asks for its result, so the convolution runs again inside that node."""
    node = [
        _span(f"{EVALUATE}ReluBackward0, op_id = 3", 400, 600),
        _span("ReluBackward0, seq = 42, op_id = 4", 401, 599),
        _span(THRESHOLD, 510, 550),
    ]
    return [*_forward(layers=layers, checkpoint=False), *node, *_rerun(405, seq=0, layers=layers)]


def _reentrant(*, layers: bool) -> list[Range]:
    """The checkpoint has a node, which also goes back over what it runs again."""
    nodes = [
        _span(f"{EVALUATE}CheckpointFunctionBackward, op_id = 3", 400, 600),
        _span("CheckpointFunctionBackward, seq = 40, op_id = 4", 401, 599),
        _span("aten::detach, op_id = 5", 402, 404),
        _span(f"{EVALUATE}ReluBackward0, op_id = 7", 505, 555),
        _span("ReluBackward0, seq = 1, op_id = 9", 507, 553),
        _span(THRESHOLD, 510, 550),
    ]
    return [*_forward(layers=layers, checkpoint=True), *nodes, *_rerun(405, seq=0, layers=layers)]


WORK = (
    Work("conv", (1000, 1010), call=(120, 125), tid=11),
    Work("relu", (1020, 1030), call=(170, 175), tid=11),
    Work("conv", (2000, 2010), call=(420, 425), tid=12),
    Work("relu", (2020, 2030), call=(470, 475), tid=12),
    Work("threshold", (2040, 2050), call=(520, 525), tid=12),
)


def _lines(folder: Path, ranges: list[Range]) -> list[dict[str, Any]]:
    return parsed(folder, ranges, *WORK)


BOTH = pytest.mark.parametrize("kind", [_not_reentrant, _reentrant])


@BOTH
def test_a_recomputed_op_is_the_op_of_its_kernels_in_the_backward_pass(
    tmp_path: Path,
    kind: Any,  # noqa: ANN401
) -> None:
    lines = _lines(tmp_path, kind(layers=False))
    assert [line["op"][0] for line in lines[:4]] == ["conv2d", "relu_", "conv2d", "relu_"]
    assert not any(line.get("fwdOp") for line in lines[:4])
    assert lines[4]["fwdOp"] == ["relu_"]
    assert [line["dir"] for line in lines] == ["fprop"] * 2 + ["bprop"] * 3
    assert [line.get("recomputed") for line in lines] == [None, None, 1, 1, None]


@BOTH
def test_a_recomputed_op_is_in_its_own_module(tmp_path: Path, kind: Any) -> None:  # noqa: ANN401
    """With the modules around it in the forward pass, so both are one layer."""
    lines = _lines(tmp_path, kind(layers=True))
    layers = [line["layer"] or line.get("fwdLayer") for line in lines]
    conv, relu = ["net", "net.conv"], ["net", "net.relu"]
    assert layers == [conv, relu, conv, relu, relu]


@BOTH
def test_without_modules_the_users_range_is_the_layer(tmp_path: Path, kind: Any) -> None:  # noqa: ANN401
    user = _span("block 3", 100, 200, 11)
    lines = _lines(tmp_path, [user, *kind(layers=False)])
    assert [line["layer"] or line.get("fwdLayer") for line in lines] == [["block 3"]] * 5


def test_ops_without_gradients_between_are_recomputed_too(tmp_path: Path) -> None:
    """Such as a mask that the model builds under no_grad."""
    mask = _span("aten::triu, op_id = 7, sizes = [[8, 8]]", 456, 464)
    ranges = [*_not_reentrant(layers=False), mask]
    work = Work("triu", call=(458, 462), tid=12)
    (line,) = parsed(tmp_path, ranges, work)
    assert (line["op"], line["recomputed"]) == (["triu"], 1)


def test_a_differentiated_backward_pass_recomputes_nothing(tmp_path: Path) -> None:
    """All ops of its nodes have sequence numbers, since they are differentiated, too."""
    ranges = [
        *_forward(layers=False, checkpoint=False),
        _span(f"{EVALUATE}ReluBackward0, op_id = 3", 400, 600),
        _span("ReluBackward0, seq = 42, op_id = 4", 401, 599),
        _span("aten::mul, seq = 43, op_id = 8, sizes = [[2, 4, 6, 6], [2, 4, 6, 6]]", 510, 550),
    ]
    line = parsed(tmp_path, ranges, *WORK[:2], WORK[-1])[-1]
    assert (line["dir"], line["fwdOp"], line.get("recomputed")) == ("bprop", ["relu_"], None)


def test_a_function_that_applies_itself_backward_recomputes_nothing(tmp_path: Path) -> None:
    """As those of `torch.distributed.nn`: it has a sequence number with gradients off, too."""
    ranges = [
        _span("_AlltoAllSingle, seq = 42, op_id = 2", 110, 150, 11),
        _span(f"{EVALUATE}_AlltoAllSingleBackward, op_id = 3", 400, 600),
        _span("_AlltoAllSingleBackward, seq = 42, op_id = 4", 401, 599),
        _span("aten::empty, op_id = 5", 410, 420),
        _span("_AlltoAllSingle, seq = 43, op_id = 6", 430, 590),
    ]
    line = parsed(tmp_path, ranges, Work("all_to_all", call=(520, 525), tid=12))[0]
    assert line.get("recomputed") is None


def test_a_checkpoint_in_a_checkpoint(tmp_path: Path) -> None:
    inner = [
        _span(f"{EVALUATE}CheckpointFunctionBackward, op_id = 13", 501, 599),
        _span("CheckpointFunctionBackward, seq = 2, op_id = 14", 502, 598),
        _span(CONV.format(seq=3), 510, 520),
        _span(f"{EVALUATE}ConvolutionBackward0, op_id = 17", 530, 560),
        _span("ConvolutionBackward0, seq = 3, op_id = 19", 531, 559),
        _span("aten::convolution_backward, op_id = 20", 532, 558),
    ]
    outer = [
        _span(f"{EVALUATE}CheckpointFunctionBackward, op_id = 3", 400, 600),
        _span("CheckpointFunctionBackward, seq = 40, op_id = 4", 401, 599),
        _span("CheckpointFunction, seq = 2, op_id = 30", 410, 450),
        _span(CONV.format(seq=3).replace(", seq = 3", ""), 415, 445),
    ]
    work = [
        Work("conv", (2000, 2010), call=(420, 425), tid=12),
        Work("conv", (2020, 2030), call=(512, 515), tid=12),
        Work("wgrad", (2040, 2050), call=(540, 545), tid=12),
    ]
    lines = parsed(tmp_path, [*_forward(layers=False, checkpoint=True), *outer, *inner], *work)
    assert [line["op"][0] for line in lines[:2]] == ["conv2d", "conv2d"]
    assert [line.get("recomputed") for line in lines] == [1, 1, None]


def test_a_custom_checkpoints_inner_backward_finds_recomputed_ops(tmp_path: Path) -> None:
    ranges = [
        replace(each, text=each.text.replace("CheckpointFunction", "Offloaded"))
        for each in _reentrant(layers=False)
    ]
    records = parse_file(nsys_db(tmp_path / "a.sqlite", WORK, ranges))
    assert records.arrow("recomputed").to_pylist() == [None, None, 1, 1, None]
    assert records.arrow("fwdOp").to_pylist()[-1] == ["relu_"]
