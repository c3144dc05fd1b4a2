"""Hypothesis strategies: texts of every kind, markers, records."""

from typing import Any

from hypothesis import strategies as st

from pyprof import marker, schema
from pyprof.marker import Call, Opaque, Summary, Tensor, Value

AWKWARD = st.sampled_from(
    [
        *("", " ", "'", '"', "\\", "\\'", '\\"', "'''", '"""', "</script>"),
        *("\n", "\r\n", "\t", "\0", "\x1f", "\x7f", "\x85", "\xa0"),
        *("\u2028", "\u2029", "\ufeff", "\ufffd", "é", "日本", "𝄞", "😀"),
        *("a,b", "null", "true", "None", "{}", "{'mod'", ", seq = 3", "\x1f+", "+"),
    ]
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.lists(
    AWKWARD, max_size=4
).map("".join)
"""Any text that can be written as UTF-8, with a liking for what breaks quoting."""

INT64 = st.integers(-(2**63), 2**63 - 1)
SHAPE = st.lists(st.integers(0, 2**40), max_size=5).map(tuple)
DTYPE = st.sampled_from(["float32", "float16", "bfloat16", "int64", "bool", "float8_e4m3fn"])

TENSOR = st.builds(
    Tensor,
    SHAPE,
    DTYPE | st.none(),
    SHAPE | st.none(),
    st.sampled_from(["", "channels_last", "strided"]),
    st.sampled_from(["", "DTensor", "NestedTensor"]),
)
SCALAR: st.SearchStrategy[Value] = (
    INT64 | st.booleans() | st.none() | TEXT | st.floats(allow_nan=False)
)
VALUE: st.SearchStrategy[Value] = st.recursive(
    SCALAR | TENSOR | st.builds(Opaque, st.sampled_from(["", "dtype", "Generator", "device"])),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
SUMMARY = st.builds(
    Summary,
    st.integers(10, 99),
    st.integers(0, 2**40) | st.none(),
    DTYPE | st.none(),
    st.lists(TENSOR, max_size=2).map(tuple),
)
CALL = st.builds(
    Call,
    TEXT,
    TEXT,
    st.lists(VALUE | SUMMARY, max_size=4).map(tuple),
    st.dictionaries(TEXT.filter(bool), VALUE, max_size=3),
    collective=st.dictionaries(TEXT, TEXT | INT64, max_size=3),
)

_EMBEDDING = (
    "{'mod': 'torch.nn.functional', 'op': 'embedding', 'args': [{'name': '', 'type': 'tensor', "
    "'shape': (35, 20), 'dtype': 'int64'}, {'name': '', 'type': 'NoneType', 'value': None}, "
    "{'name': '', 'type': 'float', 'value': 2.0}, {'name': '', 'type': 'bool', 'value': False}]}"
)
_ADDMM = (
    "aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72], [72, 10], [], []], "
    "input_op_ids = [(3,0), (0,-1), (9,0), (-1,-1), (-1,-1)]"
)
REAL_TEXTS = (
    # an op of old PyProf on a V100, 2020
    _EMBEDDING,
    "{'traceMarker': ['language-model.py:319', 'language-model.py:261']}",
    "{'mod': 'LSTMCell', 'strRepr': '10, 20'}",
    "layer:encoder.layers.3",
    "embedding, seq = 65",
    "AddmmBackward, seq = 12, sizes = [[4, 10]]",
    _ADDMM,
    "autograd::engine::evaluate_function: AddmmBackward0, op_id = 35",
    "torch::autograd::AccumulateGrad, op_id = 40, sizes = [[10]]",
    "aten::cat, op_id = 3, sizes = [[[2, 3], [2, 3]], []]",
    "Optimizer.step#SGD.step",
    "ncclDevKernel_AllReduce",
    '{"mod": "torch", "op": "mm", "args": []}',
)


def _mutated(drawn: tuple[str, int, int, str]) -> str:
    text, start, length, put = drawn
    start %= len(text) + 1
    return text[:start] + put + text[start + length :]


MUTATED = st.tuples(st.sampled_from(REAL_TEXTS), st.integers(0, 999), st.integers(0, 20), TEXT).map(
    _mutated
)
"""Real texts with a piece cut out or put in."""

ANY_TEXT = TEXT | MUTATED | st.builds(marker.encode_op, CALL)

TEXTS = st.lists(TEXT, max_size=3)
INTS = st.lists(INT64, max_size=3)
RECORD: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "kShortName": TEXT.filter(bool),
        "kDuration": INT64,
        **dict.fromkeys(("layer", "trace", "reprMarkers", "marker", "seqMarker"), TEXTS),
        "seqId": INTS,
        "subSeqId": INT64,
        "altSeqId": INTS,
        "dir": TEXT,
        **dict.fromkeys(("mod", "op"), TEXTS),
        **dict.fromkeys(("tid", "device", "stream"), INT64),
        **dict.fromkeys(("grid", "block"), st.lists(INT64, min_size=3, max_size=3)),
        "kLongName": TEXT,
    },
    optional={
        "kind": st.sampled_from(["kernel", "memcpy", "memset", "graph", "cpu"]),
        **dict.fromkeys(
            ("start", "end", "pid", "corrId", "rank", "opId", "bytes", "replay"), INT64
        ),
        "launch": st.lists(INT64, min_size=2, max_size=2),
        "sizes": st.lists(INTS, max_size=3),
        **dict.fromkeys(("dtypes", "fwdMarker", "fwdSeqMarker", "fwdOp"), TEXTS),
        "gpu": TEXT,
        "via": st.sampled_from(schema.VIAS),
    },
)
"""A line of a dict file: the old keys always, the new ones where they are known."""
