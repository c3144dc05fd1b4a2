"""The texts of annotated ranges: their formats, old and new, and what they state.

The only package that knows the wire format. Four kinds of text carry meaning:

    op       {'mod': 'torch', 'op': 'relu', 'args': [{'name': '', 'type': 'tensor', ...}]}
             of a collective also 'collective': {'group': '0', 'ranks': '[0, 1]', 'size': 2, ...}
    trace    {'traceMarker': ['model.py:12', 'block.py:7']}, outermost frame first
    module   {'mod': 'LSTMCell', 'strRepr': '10, 20'}
    layer    layer:encoder.layers.3; layer::a:b for a name with colons

and PyTorch's own, from emit_nvtx:

    aten::addmm, seq = 4, op_id = 17, sizes = [[10], [4, 72], [72, 10], [], []], input_op_ids = ...
    autograd::engine::evaluate_function: AddmmBackward0, op_id = 35
    AddmmBackward0, seq = 4, op_id = 36, sizes = [[4, 10]]

If a capture records more than emit_nvtx does, that is appended in the same style:
`dtypes = ['float32', ''], strides = [[3, 1], []], inputs = ['', '2']`, and `stopped = True` for an
op that began and never ran.

Any other text is the user's name for a part of the program (`attn(F)`, `Self-Attention`), for a
step of a loop (`iteration 3`), or a library's for its own work (`kind` lists those).

Texts come from files of unknown origin: decoding never raises and never evaluates. `templates`,
which needs Arrow, splits millions of texts at once.
"""

from pyprof.marker.decode import (
    decode_annotation,
    decode_functions,
    decode_name,
    decode_op,
    decode_seq,
    decode_trace,
)
from pyprof.marker.encode import (
    encode_annotation,
    encode_layer,
    encode_module,
    encode_op,
    encode_seq,
    encode_trace,
)
from pyprof.marker.kind import (
    NOT_OPS,
    classify,
    is_library_domain,
    layer_name,
    plain_layer,
    without_sizes,
)
from pyprof.marker.model import (
    CLOSURE,
    DDP,
    FRAMES,
    FUSED_OPS,
    STEP_OF,
    STOPPED,
    UNTYPED,
    Call,
    Kind,
    Opaque,
    Seq,
    Summary,
    Tensor,
    Value,
    is_backward,
    is_node_name,
)
from pyprof.marker.serving_steps import ServingStep, serving_step
from pyprof.marker.statement import Statement, statement, unnumbered
from pyprof.marker.user_ranges import (
    BACKWARD,
    STEP_END,
    STEP_PATTERN,
    direction,
    range_name,
    step_name,
)

__all__ = [
    "BACKWARD",
    "CLOSURE",
    "DDP",
    "FRAMES",
    "FUSED_OPS",
    "NOT_OPS",
    "STEP_END",
    "STEP_OF",
    "STEP_PATTERN",
    "STOPPED",
    "UNTYPED",
    "Call",
    "Kind",
    "Opaque",
    "Seq",
    "ServingStep",
    "Statement",
    "Summary",
    "Tensor",
    "Value",
    "classify",
    "decode_annotation",
    "decode_functions",
    "decode_name",
    "decode_op",
    "decode_seq",
    "decode_trace",
    "direction",
    "encode_annotation",
    "encode_layer",
    "encode_module",
    "encode_op",
    "encode_seq",
    "encode_trace",
    "is_backward",
    "is_library_domain",
    "is_node_name",
    "layer_name",
    "plain_layer",
    "range_name",
    "serving_step",
    "statement",
    "step_name",
    "unnumbered",
    "without_sizes",
]
