"""Range stacks as texts; frames of a stack without the framework's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import marker
from pyprof.arrays import MISSING
from pyprof.marker import Call, Kind
from pyprof.parse.ranges import range_stacks
from pyprof.parse.ranges.range_stacks import file_and_line, is_framework, user_line, user_trace
from pyprof.parse.ranges.texts import Texts

SITE = "/opt/conda/lib/python3.12/site-packages/"
FRAMEWORK = [
    SITE + "torch/nn/modules/module.py:1736",
    SITE + "torch/_tensor.py:581",
    SITE + "torch/optim/optimizer.py:487",
    SITE + "torch/utils/_contextlib.py:116",
    SITE + "apex/amp/wrap.py:28",
    SITE + "pyprof/instrument/wrap.py:3",
    "/usr/lib/python3/dist-packages/torch/functional.py:9",
    "C:\\venv\\Lib\\site-packages\\torch\\nn\\functional.py:2",
    "<frozen importlib._bootstrap>:1",
    "torch/nn/modules/conv.py:536",  # relative to site-packages
    "triton/runtime/jit.py:612",
    # code that Inductor wrote, wherever its cache is
    "/var/cache/torchinductor_root/al/cal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea.py:52",
    "/var/cache/torchinductor_jane.doe-2/ab/anything.py:1",
    "/cache/rank_0_0/al/cal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea.py:7",
    "C:\\cache\\al\\cal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea.py:7",
]
NOT = [
    "/app/train.py:3",
    "/home/me/torch/train.py:3",
    "/src/apex/examples/main.py:3",
    SITE + "transformers/models/bert/modeling_bert.py:5",
    SITE + "torchvision/models/resnet.py:9",
    SITE + "torch/nn/utils/clip_grad.py:3",
    "train.py:1",
    "<stdin>:1",
    "torch/nn/utils/clip_grad.py:4",
    "transformers/models/vit/modeling_vit.py:170",
    "my/torch/model.py:3",
    "/home/me/ab/cab.py:3",  # a folder of two letters is not a cache by itself
    "/home/me/al/cal4xpia.py:9",
]


@pytest.mark.parametrize("frame", FRAMEWORK)
def test_frames_of_the_framework_are_left_out(frame: str) -> None:
    assert is_framework(frame)
    assert user_trace(("/app/train.py:3", frame)) == ("/app/train.py:3",)


@pytest.mark.parametrize("frame", NOT)
def test_other_frames_stay(frame: str) -> None:
    assert not is_framework(frame)
    assert user_trace((frame,)) == (frame,)


def test_the_users_line_is_the_innermost_outside_libraries() -> None:
    """A library that the user calls is in the trace, but is not the line to look at."""
    trace = ("/app/train.py:3", "/app/net.py:8", SITE + "transformers/bert.py:5")
    assert user_line(trace) == "/app/net.py:8"
    assert user_line(trace[2:]) is None
    assert user_line(()) is None
    frames = ("train.py:3", "transformers/vit.py:170", "<frozen abc>:1")
    assert user_line(frames) == "transformers/vit.py:170"
    assert user_line((*frames, "torch/nn/utils/rnn.py:258")) == "transformers/vit.py:170"


OTHERS = [
    "/me/torch_geometric.nn.conv.gat_conv_GATConv_propagate_n8u3s4wo.py:176",  # a temporary file
    "<eval_with_key>.5:12",  # of a graph: it tells apart ops that the user calls by one line
    "/usr/lib/python3.13t/threading.py:9",
    "C:\\Python312\\Lib\\contextlib.py:3",
    "/opt/app/python312.zip/runpy.py:3",
    "runpy.py:86",
    "threading.py:1002",
    "contextlib.py:120",
    "functools.py:5",
    "multiprocessing/spawn.py:122",
    "importlib/__init__.py:126",
    "concurrent/futures/thread.py:58",
]


@pytest.mark.parametrize("frame", OTHERS)
def test_lines_of_generated_code_and_the_standard_library_are_not_the_users(frame: str) -> None:
    assert user_line(("/app/train.py:3", frame)) == "/app/train.py:3"
    assert user_trace((frame,)) == (frame,)


@pytest.mark.parametrize(
    "frame", ["/app/runpy.py:3", "my/threading.py:2", "C:\\me\\contextlib.py:1", "profile.py:3",
              "/app/torch_geometric/my_conv.py:3"]
)  # fmt: skip
def test_a_users_file_may_have_the_name_of_a_library_s(frame: str) -> None:
    assert user_line((frame,)) == frame


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("net.py:12", ("net.py", 12)),
        ("C:\\a b\\net.py:3", ("C:\\a b\\net.py", 3)),
        ("gone.py:0", None),
        ("gone.py:-1", None),
        ("gone.py:1\u00b2", None),
        ("gone.py:" + "9" * 5000, None),
        ("gone.py:", None),
        (":3", None),
        ("gone.py", None),
    ],
)
def test_line_numbers_begin_at_1(frame: str, expected: tuple[str, int] | None) -> None:
    """A frame with another number is not a source line."""
    assert file_and_line(frame) == expected


TEXTS = (
    "layer:a",
    "layer:b",
    marker.encode_trace(["a.py:1"]),
    marker.encode_trace(["a.py:1", "b.py:2"]),
    marker.encode_module("LSTM", "10, 20"),
    marker.encode_op(Call("torch", "mm")),
    marker.encode_op(Call("torch.optim", "step")),
    "aten::mm, seq = 1",
    "MmBackward0, seq = 1",
    "torch.utils.checkpoint.CheckpointFunctionBackward, seq = 3",
    "Optimizer.step#SGD.step",
    "attention",
    "mlp (backward)",
    "iteration 3",
)


@st.composite
def _trees(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Draw paths as (parent, template), parents first."""
    count = draw(st.integers(1, 25))
    return [
        (draw(st.integers(MISSING, place - 1)), draw(st.integers(0, len(TEXTS) - 1)))
        for place in range(count)
    ]


def _expected(texts: list[str], most: int) -> range_stacks.RangeStack:
    """Return what texts, outermost first, state: each read by itself."""
    kinds = [marker.classify(text) for text in texts]
    of = {kind: [t for t, k in zip(texts, kinds, strict=True) if k == kind] for kind in Kind}
    calls = [(t, marker.decode_op(t)) for t in of[Kind.OP]]
    seqs = [t for t in of[Kind.SEQ] if "Checkpoint" not in t]
    nodes = [place for place, text in enumerate(texts) if "Mm" in text or "Checkpoint" in text]
    traces = [marker.decode_trace(t) for t in of[Kind.TRACE]]
    caller = _expected(texts[: nodes[0]], 1000) if nodes else None
    inside = kinds[nodes[0] :] if nodes else []
    named = tuple(
        marker.layer_name(t) if k == Kind.LAYER else marker.range_name(t)
        for t, k in zip(texts, kinds, strict=True)
        if k in (Kind.LAYER, Kind.USER)
    )
    layer = named or ("iteration",) * bool(of[Kind.STEP])
    begin = _find_recomputation(texts, kinds)
    inner = texts if begin is None else texts[begin + 1 :]
    recomputed = begin is not None and any(t in seqs or t in dict(calls) for t in inner)
    inner = inner if recomputed else texts
    direction_hint = "bprop" if any("(backward)" in text for text in texts) else ""
    trace = traces[-1] if traces else ()
    return range_stacks.RangeStack(
        layer=layer[-most:],
        trace=trace[-most:],
        modules=tuple(of[Kind.MODULE])[-most:],
        markers=tuple(marker.statement(t) for t, _ in calls)[-most:],
        ops=tuple((c.mod, c.op) for c in map(marker.decode_op, inner) if c)[-most:],
        seqs=tuple(map(marker.statement, seqs))[-most:],
        backward=bool(nodes),
        optimizer=bool(of[Kind.OPTIMIZER]) or any(c.op == "step" for _, c in calls if c),
        direction_hint=direction_hint,
        naming=tuple(marker.statement(text) for text in inner if text in seqs)[-most:],
        recomputed=recomputed,
        inherited=(not {Kind.LAYER, Kind.USER} & {*inside}, trace == caller.trace)
        if caller
        else (False, False),
    )


def _find_recomputation(texts: list[str], kinds: list[Kind]) -> int | None:
    """Find the innermost checkpoint, or module within a node, that contains no other node."""
    begin, backward = None, False
    for n, (text, kind) in enumerate(zip(texts, kinds, strict=True)):
        if "MmBackward0" in text:
            begin, backward = None, True
        elif "CheckpointFunction" in text:
            begin, backward = n, True
        elif kind == Kind.LAYER and backward and begin is None:
            begin = n
    return begin


@given(_trees(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_selected_paths_are_formatted(tree: list[tuple[int, int]], most: int, rng: object) -> None:
    found = range_stacks.RangeStacks(
        np.arange(len(tree)),
        np.array([parent for parent, _ in tree]),
        np.array([template for _, template in tree]),
        np.zeros(len(tree), np.int8),
    )
    kinds = np.array([marker.classify(text) for text in TEXTS], np.int8)
    texts = Texts(
        np.zeros(0, np.int32), np.zeros(0, np.int64), [*map(marker.statement, TEXTS)], kinds
    )
    expected = []
    wanted = sorted(rng.sample(range(len(tree)), rng.randint(0, len(tree))))  # type: ignore[attr-defined]
    for place in wanted:
        around, at = [], place
        while at != MISSING:
            around.append(TEXTS[tree[at][1]])
            at = tree[at][0]
        expected.append(_expected(around[::-1], most))
    backward = found.backward(texts)
    recomputed = found.find_recomputed(texts, backward)
    assert found.describe(texts, recomputed, np.array(wanted, np.int64), most) == expected
    assert [entry.backward for entry in expected] == backward[wanted].tolist()


@pytest.mark.parametrize(
    ("text", "name"),
    [("AddBackward, seq = 3", "Add"), ("MyFunctionBackward, seq = 3", "MyFunction"),
     ("GeneratedBackwardFor_lib_double_defaultBackward, seq = 3",
      "GeneratedBackwardFor_lib_double_default")],
)  # fmt: skip
def test_a_node_without_number_is_named_without_its_suffix(text: str, name: str) -> None:
    """In the first PyTorch versions, of functions in Python, and of an operator's derivative."""
    assert range_stacks.ops([], [marker.Statement(text)]) == [("na", name)]
