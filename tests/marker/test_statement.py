"""The fields of a range's text."""

import pickle

import pytest

from pyprof.marker import Call, Kind, Tensor, encode_op, statement, unnumbered

_ADDMM = "aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72]]"
_ENGINE = "autograd::engine::evaluate_function: AddmmBackward0, op_id = 35"
_NODE = "AddmmBackward0, seq = 4, op_id = 36, sizes = [[4, 10]]"


def test_an_op_of_pytorch_has_a_name_a_call_and_a_number() -> None:
    said = statement(_ADDMM)
    assert (said.kind, said.name, said.node) == (Kind.SEQ, "aten::addmm", "aten::addmm")
    assert said.call == Call("aten", "addmm", (Tensor((10,)), Tensor((4, 72))))
    assert said.has_number
    assert said.tells_shapes
    assert not said.is_node
    assert [said.is_stopped, statement(f"{_ADDMM}, stopped = True").is_stopped] == [False, True]


def test_the_engine_and_the_node_inside_it_differ() -> None:
    engine, node = statement(_ENGINE), statement(_NODE)
    assert engine.node == node.node == "AddmmBackward0"
    assert [engine.is_engine, engine.is_node, engine.is_backward] == [True, False, True]
    assert [node.is_engine, node.is_node, node.is_backward] == [False, True, True]
    assert engine.call is None


@pytest.mark.parametrize(
    ("call", "tells_shapes", "names_op"),
    [
        (Call("torch", "relu"), True, True),
        (Call("triton", "triton_poi_fused_0"), False, True),  # a reader's own
        (Call("torch", "__getattr__"), True, False),
    ],
)
def test_a_marker_may_have_no_shapes_or_no_op(
    call: Call, *, tells_shapes: bool, names_op: bool
) -> None:
    said = statement(encode_op(call))
    assert (said.tells_shapes, said.names_op) == (tells_shapes, names_op)


def test_a_statement_survives_pickling() -> None:
    said = statement(_ADDMM)
    assert pickle.loads(pickle.dumps(said)) is said  # noqa: S301 - ours


def test_unnumbered_texts_of_two_calls_are_equal() -> None:
    assert unnumbered(_ADDMM) == unnumbered(_ADDMM.replace("17", "18"))
