"""Ops, frames and modules of a trace as marker texts."""

from typing import Any

import pytest

from pyprof import marker
from pyprof.marker import Call, Tensor
from pyprof.readers.kineto import texts


@pytest.mark.parametrize(
    ("name", "args", "is_op"),
    [
        ("aten::mm", {}, True),
        ("my range with a::b later", {}, False),
        ("forward", {"Input Dims": [[2]]}, False),
        ("nccl:all_reduce", {"Input Dims": [[2]]}, True),
        ("AddmmBackward0", {}, True),
        ("triton_poi_fused_add_0", {}, True),
        ("MyFunction", {"Sequence number": 3}, True),
    ],
)
def test_ops_differ_from_annotations(name: str, args: dict[str, Any], is_op: bool) -> None:  # noqa: FBT001 - a case
    assert texts.is_op(name, args) is is_op


def test_an_op_keeps_types_strides_and_values() -> None:
    args = {
        "Input Dims": [[2, 3], []],
        "Input type": ["c10::BFloat16", "Scalar"],
        "Input Strides": [[3, 1], []],
        "Concrete Inputs": ["", "0.5"],
    }
    call = marker.statement(texts.op("aten::mul", args, 1, 2)).call
    assert call == Call("aten", "mul", (Tensor((2, 3), "bfloat16", (3, 1)), 0.5))


@pytest.mark.parametrize(
    ("dims", "sizes"),
    [
        ("8,16;32,16;32", "[[8, 16], [32, 16], [32]]"),
        ("8,16;;16", "[[8, 16], [], [16]]"),
        ("", "[[]]"),
        ("8,x;16", ""),
        ("[8, 16]", ""),
    ],
)
def test_shapes_may_be_one_text(dims: str, sizes: str) -> None:
    """As torch_npu writes them; any other text is unknown."""
    written = texts.op("aten::linear", {"Input Dims": dims}, 1, 2)
    assert written.partition("sizes = ")[2] == sizes


def test_a_collective_is_a_call_of_its_message() -> None:
    args = {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 8}
    call = marker.decode_op(texts.op("record_param_comms", args, None, None))
    assert call == Call("c10d", "allreduce", (Tensor((8,), "bfloat16"),))


@pytest.mark.parametrize(
    ("name", "frame"),
    [("net.py(12): forward", ("net.py:12", "forward")), ("<built-in method add>", None)],
)
def test_frames_are_split_into_file_line_and_function(
    name: str, frame: tuple[str, str] | None
) -> None:
    assert texts.frame(name) == frame


def test_a_module_hierarchy_becomes_layers_without_methods() -> None:
    layers = texts.hierarchy("TOP(Net)::forward.conv1(Conv2d)::forward")
    assert layers == ("layer:TOP(Net)", "layer:conv1(Conv2d)")
