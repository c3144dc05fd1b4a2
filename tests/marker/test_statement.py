"""The fields of a range's text."""

import pickle

import pytest

from pyprof.marker import Call, Kind, Tensor, encode_op, encode_trace, statement, unnumbered

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


def test_the_engine_and_the_node_inside_it_differ() -> None:
    engine, node = statement(_ENGINE), statement(_NODE)
    assert engine.node == node.node == "AddmmBackward0"
    assert [engine.is_engine, engine.is_node, engine.is_backward] == [True, False, True]
    assert [node.is_engine, node.is_node, node.is_backward] == [False, True, True]
    assert engine.call is None


@pytest.mark.parametrize(
    ("text", "stopped"),
    [("aten::mm, seq = 1, op_id = 2, stopped = True", True), ("aten::mm, seq = 1", False)],
)
def test_only_an_op_that_never_ran_is_stopped(text: str, stopped: bool) -> None:  # noqa: FBT001 - a parameter
    assert statement(text).is_stopped is stopped


def test_a_marker_of_a_readers_own_call_has_no_shapes() -> None:
    assert statement(encode_op(Call("torch", "relu"))).tells_shapes
    assert not statement(encode_op(Call("triton", "triton_poi_fused_0"))).tells_shapes


def test_attribute_lookups_are_no_ops() -> None:
    assert statement(encode_op(Call("torch", "relu"))).names_op
    assert not statement(encode_op(Call("torch", "__getattr__"))).names_op


def test_a_trace_has_frames() -> None:
    assert statement(encode_trace(["a.py:1", "b.py:2"])).frames == ("a.py:1", "b.py:2")


def test_a_statement_survives_pickling() -> None:
    said = statement(_ADDMM)
    assert pickle.loads(pickle.dumps(said)) is said  # noqa: S301 - ours


def test_unnumbered_texts_of_two_calls_are_equal() -> None:
    assert unnumbered(_ADDMM) == unnumbered(_ADDMM.replace("17", "18"))
