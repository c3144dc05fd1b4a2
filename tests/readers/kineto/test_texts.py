"""Ops, frames and modules of a trace as marker texts."""

from typing import Any

import pytest

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
        ("record_param_comms", {}, True),  # collectives, before torch 2.2
        ("CompiledFunctionBackward", {}, True),
    ],
)
def test_ops_differ_from_annotations(name: str, args: dict[str, Any], is_op: bool) -> None:  # noqa: FBT001 - a case
    assert texts.is_op(name, args) is is_op


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
