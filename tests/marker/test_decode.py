"""Marker texts round trip, and no text makes decoding raise."""

import ast
import json
import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof import marker
from pyprof.marker import Call, Kind, Opaque, Tensor, Value
from tests import strategies
from tests.known import known

DEEP = "[" * 3000


@given(call=strategies.CALL)
def test_an_op_marker_round_trips(call: Call) -> None:
    found = known(marker.decode_op(marker.encode_op(call)))
    assert repr(found) == repr(call)  # 1, 1.0 and True differ here, unlike with ==


@given(value=st.floats())
def test_inf_and_nan_round_trip(value: float) -> None:
    """They are no Python literals, and are written as texts."""
    found = known(marker.decode_op(marker.encode_op(Call("m", "o", (value,)))))
    (decoded,) = found.args
    assert isinstance(decoded, float)
    assert decoded == value or (math.isnan(decoded) and math.isnan(value))


@given(call=strategies.CALL, cut=st.integers(0, 400))
def test_an_op_marker_cut_short_keeps_its_name_or_is_none(call: Call, cut: int) -> None:
    text = marker.encode_op(call)[:cut]
    found = marker.decode_op(text)
    if found is not None and text != marker.encode_op(call):
        assert not found.whole
        assert found.args == ()


@given(frames=strategies.TEXTS, names=strategies.TEXTS)
def test_a_trace_round_trips(frames: list[str], names: list[str]) -> None:
    text = marker.encode_trace(frames, names)
    assert marker.classify(text) == Kind.TRACE
    assert marker.decode_trace(text) == tuple(frames)
    assert marker.decode_functions(text) == tuple(names)


@given(name=strategies.TEXT)
@example(name="step: 3")
@example(name=":a:b")
def test_a_layer_round_trips(name: str) -> None:
    text = marker.encode_layer(name)
    assert marker.classify(text) == Kind.LAYER
    assert marker.layer_name(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [("layer:net", "net"), ("layer:a:b", "a"), ("layer:step: 3", "step"), ("layer:", "")],
)
def test_layers_of_old_captures_end_at_their_next_colon(text: str, name: str) -> None:
    assert marker.layer_name(text) == name


@given(mod=st.from_regex(r"[A-Za-z_]\w{0,9}", fullmatch=True), text=strategies.TEXT)
def test_a_module_text_is_recognised(mod: str, text: str) -> None:
    """Unless its description itself looks like an op."""
    assert marker.classify(marker.encode_module(mod, text)) == Kind.MODULE


@given(
    seq=st.integers(0, 10**17) | st.none(),
    op_id=st.integers(0, 10**17),
    sizes=st.lists(st.lists(st.integers(1, 9), max_size=3), max_size=3) | st.none(),
)
def test_a_seq_text_round_trips(seq: int | None, op_id: int, sizes: list[list[int]] | None) -> None:
    text = marker.encode_seq("aten::mm", seq=seq, op_id=op_id, sizes=sizes)
    found = marker.decode_seq(text)
    assert (found.name, found.seq, found.op_id) == ("aten::mm", seq, op_id)
    assert found.call is not None
    assert (found.call.mod, found.call.op, found.call.whole) == ("aten", "mm", sizes is not None)
    expected = [Tensor(tuple(size)) if size else Opaque() for size in sizes or []]
    assert list(found.call.args) == expected


def test_a_seq_text_keeps_types_and_strides() -> None:
    text = marker.encode_seq("aten::mm", sizes=[[4, 2]], dtypes=["float16"], strides=[[1, 4]])
    found = marker.decode_seq(text).call
    assert found is not None
    assert found.args == (Tensor((4, 2), "float16", (1, 4)),)


@given(text=strategies.ANY_TEXT)
@example(text="{'mod': 'a', 'op': 'b', 'args': " + DEEP)
@example(text="{'traceMarker': " + DEEP)
@example(text="aten::mm, seq = 1, sizes = " + DEEP)
@example(text="aten::mm, seq = " + "9" * 5000)
@example(text="aten::mm, seq = 1, sizes = [[" + "9" * 5000 + "]]")
@example(text="{'mod': 'a', 'op': 'b', 'args': [{'shape': (" + "9" * 5000 + ",)}]}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [{'name': [], 'type': {}, 'value': {1: 2}}]}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [{[]: 1}]}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [{'shape': (1,), 'dtype': 1, 'stride': 'x'}]}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [{'items': {}, 'len': True}]}")
@example(text="{'mod': 'a', 'op': 'b', 'args': __import__('os')}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [], 'collective': {'size': [], 1: 2, 'in': True}}")
@example(text="{'mod': 'a', 'op': 'b', 'args': [], 'collective': [1]}")
@example(text="layer:")
@example(text="\ud800")
def test_no_text_makes_decoding_raise(text: str) -> None:
    kind = marker.classify(text)
    assert kind in Kind
    call = marker.decode_op(text)
    assert call is None or hash(call) == hash(marker.decode_op(text))
    assert isinstance(marker.decode_trace(text), tuple)
    assert isinstance(marker.decode_functions(text), tuple)
    assert isinstance(marker.decode_seq(text), marker.Seq)
    assert isinstance(marker.statement(text).is_backward, bool)
    if kind == Kind.LAYER:
        assert isinstance(marker.layer_name(text), str)
    if kind == Kind.OP:
        assert call is not None


@pytest.mark.parametrize("name", ["'mod': 'torch'", "'op': 'mm'", "'mod': 1, 'op': 'mm'"])
def test_a_call_has_the_name_of_a_module_and_of_an_op(name: str) -> None:
    assert marker.decode_op(f"{{{name}, 'args': []}}") is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *zip(
            strategies.REAL_TEXTS,
            [
                *(Kind.OP, Kind.TRACE, Kind.MODULE, Kind.LAYER, Kind.SEQ, Kind.SEQ, Kind.SEQ),
                *(Kind.SEQ, Kind.SEQ, Kind.SEQ, Kind.OPTIMIZER, Kind.CONTEXT, Kind.OP),
            ],
            strict=True,
        ),
        ("aten::mm", Kind.SEQ),
        ("SumBackward1", Kind.SEQ),
        ("MyFnBackward, seq = 4, op_id = 9", Kind.SEQ),
        ("AddmmBackward, seq = 4", Kind.SEQ),
        ("CopySlices, seq = 4, op_id = 9", Kind.SEQ),
        ("MmBackward0_copy, op_id = 9", Kind.SEQ),
        ("autograd::engine::evaluate_function: MyFnBackward, op_id = 8", Kind.SEQ),
        *((text, Kind.USER) for text in ("Backward", "Backward, op_id = 3", "lossBackward")),
        *((text, Kind.USER) for text in ("Backward 2", "model_backward", "MyFnBackward")),
        ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", Kind.SEQ),
        ("Optimizer.zero_grad#Adam.zero_grad", Kind.OPTIMIZER),
        ("cub::DeviceScan", Kind.CONTEXT),
        ("my range, seq 3", Kind.USER),
        ("layered", Kind.USER),
        ("{'loss': 0.3}", Kind.CONTEXT),
        ("", Kind.CONTEXT),
    ],
)
def test_every_real_text_has_its_kind(text: str, kind: Kind) -> None:
    assert marker.classify(text) == kind


def test_the_arguments_of_a_real_op_are_read() -> None:
    expected: tuple[Value, ...] = (Tensor((35, 20), "int64"), None, 2.0, False)
    text = strategies.REAL_TEXTS[0]
    found = marker.decode_op(text)
    assert found == Call("torch.nn.functional", "embedding", expected)
    assert marker.decode_op(json.dumps(ast.literal_eval(text))) == found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("AddmmBackward", "AddmmBackward0", "SumBackward1")),
        *((name, True) for name in ("MyFnBackward", "aten::conv_backward")),
        ("autograd::engine::evaluate_function: X", True),
        *((name, False) for name in ("aten::mm", "BackwardsCompatible", "Backward0Hook")),
    ],
)
def test_backward_nodes_are_recognised_by_name(name: str, expected: bool) -> None:  # noqa: FBT001
    """With any number after Backward, and the engine's own ranges."""
    assert marker.is_backward(name) is expected


PIECES = (", seq = ", ", op_id = ", ", sizes = ", ", inputs = ", "5", "-3", "[[2]]", "aten::mm")
PATTERN = re.compile(r", (seq|op_id|sizes|input_op_ids|dtypes|strides|inputs|stopped) = ")


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_fields_are_found_in_any_order(text: str) -> None:
    """As with one pattern for all; the last of repeated fields counts."""
    name, *rest = PATTERN.split(text)
    found = marker.decode_seq(text)
    assert (found.name, marker.decode_name(text)) == (name, name)
    numbers = [
        (key, re.match(r"-?\d+", value)) for key, value in zip(rest[::2], rest[1::2], strict=True)
    ]
    last = {key: int(number[0]) for key, number in numbers if number}
    assert (found.seq, found.op_id) == (last.get("seq"), last.get("op_id"))


@pytest.mark.slow
def test_deeply_nested_lists_are_not_a_marker() -> None:
    for depth in (70, 900, 50_000):
        deep = "[" * depth + "]" * depth
        assert marker.decode_seq(f"aten::mm, sizes = {deep}").call == Call(
            "aten", "mm", whole=False
        )
        for quote in "'\"":
            text = f"{{'mod': 'torch', 'op': 'cat', 'args': {deep}}}".replace("'", quote)
            assert marker.decode_op(text) == Call("torch", "cat", whole=False)
        assert marker.decode_trace(f"{{'traceMarker': {deep}}}") == ()
