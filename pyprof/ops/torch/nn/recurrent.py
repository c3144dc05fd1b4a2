"""RNN, LSTM and GRU: whole networks and single cells.

Each weight matrix meets each step of each sequence: 2 operations an element of it. The gates cost
an element of the hidden state and step: tanh or sigmoid 20 each, their sums and products 1 each.
Bytes: input, states and weights read once, output and states written once: a kernel that keeps
the weights on the chip does that.
"""

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, fresh, has_rank, like, row_count, size, twice, twice_of

FAMILY = "rnn"

# matrices stacked in a weight, and the operations of the gates for each element of the state
_KINDS = {
    "lstm": (4, 5 * TRANSCENDENTAL + 8),  # 5 functions; 4 sums of two products; f*c + i*g, o*tanh
    "gru": (3, 3 * TRANSCENDENTAL + 8),  # 3 functions; 3 sums; r*h, (1-z)*n + z*h
    "rnn_relu": (1, 2),  # a sum and a comparison
    "rnn": (1, TRANSCENDENTAL + 1),
}
_MODES = ("rnn_relu", "rnn", "lstm", "gru")  # ATen's numbers: relu, tanh, LSTM, GRU

_STEPS = f16(5, 2, 6)
_STATE = f16(1, 2, 4)
_WEIGHTS = (*(f16(16, 6), f16(16, 4)), *(f16(16), f16(16)))


def _kind(a: Args) -> str:
    if "mode" in a.values:
        mode = a.integer("mode", -1)
        if not 0 <= mode < len(_MODES):
            raise Unknown("mode not recorded")
        return _MODES[mode]
    named = f"{a.mod}.{a.op}".lower()
    return next(kind for kind in _KINDS if kind in named)


def _network(a: Args, x: Tensor, states: tuple[Tensor, ...], weights: tuple[Tensor, ...]) -> Work:
    kind, num_layers = _kind(a), a.values.get("num_layers")
    matrices = [w for w in weights if has_rank(w, 2)]
    widths = {size(state, -1) for state in states}
    # one for the input, one for the state; an LSTM whose output is projected has one more
    each = 2 + (len(widths) > 1)
    if not matrices or len(matrices) % each:
        raise Unknown("weights not recorded")
    stacked, gate = _KINDS[kind]
    steps = row_count(x)
    hidden = size(matrices[1], 0) // stacked
    layers = len(matrices) // each  # of one direction each
    products = sum(2 * steps * w.numel for w in matrices)
    directions = 2 if layers > 1 and matrices[each].shape == matrices[0].shape else 1
    if isinstance(num_layers, int) and num_layers > 0:
        directions = layers // num_layers
    out = like(x, (*x.shape[:-1], min(widths, default=hidden) * directions))
    flops = products + gate * steps * hidden * layers
    params = {"steps": steps, "I": size(x, -1), "H": hidden, "layers": layers}
    return Work(flops, (x, *states, *weights), (out, *map(like, states)), params)


def _backward(forward: Work) -> Work:
    """Both gradients of every product, from the output's gradient; the states' is left out."""
    return twice(replace(forward, writes=forward.writes[:1]))


# 10 steps: 2 * 10 * (96 + 64) = 3200, gates 108 * 10 * 4 = 4320; x 60, states 16, weights
# 96 + 64 + 32, out 40, states 16: 324 elements of 2 bytes
@op(
    *("lstm", "gru", "rnn_tanh", "rnn_relu"),
    signature="Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers",
    example=Example((_STEPS, (_STATE, _STATE), _WEIGHTS, True, 1), flops=7520, bytes=648),
)
def network(a: Args) -> Work:
    """All layers over all steps; old markers wrote states and weights in one flat list."""
    tensors = (*a.tensors("hx"), *(a.tensors("params") if a.given("params") else ()))
    states = tuple(t for t in tensors if len(t.shape) == len(_STATE.shape))
    weights = tuple(t for t in tensors if len(t.shape) < len(_STATE.shape))
    return _network(a, a.tensor("input"), states, weights)


# twice 7520; the 268 read above with go 40, written x 60, states 16, weights 192: 576 of 2 bytes
@backward_of(network, flops=15040, bytes=1152)
def network_backward(a: Args) -> Work:
    """The gradients of input, states and weights."""
    return _backward(network(a))


_CUDNN = (
    "Tensor input, Tensor[] weight, int weight_stride0, Tensor? weight_buf, Tensor hx, Tensor? cx,"
)
_MKLDNN = "Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3"


@op(
    "aten::_cudnn_rnn",
    signature=f"{_CUDNN} int mode, int hidden_size, int proj_size, int num_layers",
    # as above
    example=Example((_STEPS, _WEIGHTS, 4, None, _STATE, _STATE, 2, 4), flops=7520, bytes=648),
)
@op(
    "aten::miopen_rnn",
    signature=(
        "Tensor input, Tensor[] weight, int weight_stride0, Tensor hx, Tensor? cx, int mode,"
        "int hidden_size, int num_layers"
    ),
    example=Example((_STEPS, _WEIGHTS, 4, _STATE, _STATE, 2, 4), flops=7520, bytes=648),
)
@op(
    "aten::_cudnn_rnn_backward",
    signature=(
        f"{_CUDNN} Tensor output, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, int mode,"
        "int hidden_size, int proj_size, int num_layers"
    ),
    example=Example(
        (_STEPS, _WEIGHTS, 4, None, _STATE, _STATE, f16(5, 2, 4), None, None, None, 2),
        flops=15040,
        bytes=1152,
    ),
)
# as above
@op(
    "aten::mkldnn_rnn_layer",
    signature=f"{_MKLDNN}, Tensor hx, Tensor cx, bool reverse, int[] batch_sizes, int mode",
    example=Example((_STEPS, *_WEIGHTS, _STATE, _STATE, False, (), 2, 4, 1), flops=7520, bytes=648),
)
@op(
    "aten::mkldnn_rnn_layer_backward",
    signature=(
        f"{_MKLDNN}, Tensor hx, Tensor cx, Tensor output, Tensor hy, Tensor cy,"
        "Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, bool reverse, int mode"
    ),
    example=Example(
        (
            *(_STEPS, *_WEIGHTS, _STATE, _STATE, f16(5, 2, 4), _STATE, _STATE, None, None),
            *(None, False, 2, 4, 1),
        ),
        flops=15040,
        bytes=1152,
    ),
)
def vendor_rnn(a: Args) -> Work:
    """The same as a library's entry point; oneDNN's is of one layer in one direction."""
    one_layer = a.present("weight0", "weight1", "weight2", "weight3")
    weights = one_layer or a.tensors("weight")
    work = _network(a, a.tensor("input"), a.present("hx", "cx"), weights)
    return _backward(work) if a.op.endswith("backward") else work


# --- cells --------------------------------------------------------------------------------------
_CELL = f16(2, 4)


# 2 * 2 * 16 * (6 + 4) = 640, gates 108 * 2 * 4 = 864; x 12, states 16, weights 192, states 16 of 2
@op(
    *("LSTMCell.forward", "GRUCell.forward", "RNNCell.forward"),
    *("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"),
    signature="Tensor input, Tensor[] hx, Value[] params",
    example=Example((f16(2, 6), _CELL, _CELL), flops=1504, bytes=472),
)
def cell(a: Args) -> Work:
    """One step: the input's product, the state's product, the gates.

    Input and state tell the sizes of weights that are not among the arguments.
    """
    x, kind = a.tensor("input"), _kind(a)
    named = tuple(value for value in a.listed("params") if isinstance(value, Tensor))
    tensors = (*a.tensors("hx"), *named)
    if not tensors:
        raise Unknown("hidden state not recorded")
    stacked, gate = _KINDS[kind]
    states = tensors[: 2 if kind == "lstm" else 1]
    batch, width, hidden = row_count(x), size(x, -1), size(states[0], -1)
    rows = stacked * hidden
    weights = tensors[len(states) :] or (
        *(fresh((rows, width), x.dtype), fresh((rows, hidden), x.dtype)),
        *(fresh((rows,), x.dtype), fresh((rows,), x.dtype)),
    )
    flops = 2 * batch * rows * (width + hidden) + gate * batch * hidden
    params = {"B": batch, "X": width, "H": hidden}
    return Work(flops, (x, *states, *weights), tuple(map(like, states)), params)


# twice 1504; read 220 and the states' gradients 16, written x 12, states 16, weights 192 of 2 bytes
backward_of(cell, flops=3008, bytes=912)(twice_of(cell))


# gates 108 * 2 * 4; two products of 2 * 16 and the state 8 read, hidden and state 8 each and the
# gates 32 kept: 64 + 8 read, 48 written of 2 bytes
@op(
    "aten::_thnn_fused_lstm_cell",
    signature="Tensor input, Tensor hidden_gates, Tensor cx, Tensor? bias, Tensor? hidden_bias",
    example=Example((*(f16(2, 16),) * 2, _CELL), flops=864, bytes=240),
)
@op(
    "aten::_thnn_fused_gru_cell",
    signature="Tensor input, Tensor hidden_gates, Tensor cx, Tensor? bias, Tensor? hidden_bias",
    # gates 68 * 8; two products of 2 * 12 and the state 8 read, the state 8 and 5 * 8 kept: 104 * 2
    example=Example((*(f16(2, 12),) * 2, _CELL), flops=544, bytes=208),
)
def gates(a: Args) -> Work:
    """The pointwise half of a cell, the products being done."""
    first, second, state = a.tensor("input"), a.tensor("hidden_gates"), a.tensor("cx")
    kind = "lstm" if "lstm" in a.op else "gru"
    biases = a.present("bias", "hidden_bias")
    workspace = like(first) if kind == "lstm" else fresh((5 * state.numel,), state.dtype)
    states = (like(state),) * (2 if kind == "lstm" else 1)
    return Work(
        _KINDS[kind][1] * state.numel, (first, second, state, *biases), (*states, workspace)
    )


# tanh 20 and 22 more for each of 2 * 4 states: 336; two gradients, two states 4 * 8 and the gates
# 32 read, the gates' gradients 32 and a state's 8 written: 104 of 2 bytes
@op(
    "aten::_thnn_fused_lstm_cell_backward_impl",
    signature="Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor gates",
    example=Example((_CELL, _CELL, _CELL, _CELL, f16(2, 16), True), flops=336, bytes=208),
)
# 17 for each of 8 states: 136; go 8 and 5 * 8 kept read, 2 * 24 and 8 written: 104 of 2 bytes
@op(
    "aten::_thnn_fused_gru_cell_backward",
    signature="Tensor grad_hy, Tensor gates",
    example=Example((_CELL, f16(2, 20), True), flops=136, bytes=208),
)
def gates_backward(a: Args) -> Work:
    """The gates' gradients as torch's fused kernels compute them; biases' sums are their own op."""
    workspace = a.tensor("gates")
    if "gru" in a.op:
        go = a.tensor("grad_hy")
        both = fresh((6 * go.numel,), go.dtype)
        return Work(17 * go.numel, (go, workspace), (both, like(go)))
    state = a.tensor("cx")
    reads = (*a.present("grad_hy", "grad_cy"), state, a.tensor("cy"), workspace)
    return Work((TRANSCENDENTAL + 22) * state.numel, reads, (like(workspace), like(state)))
