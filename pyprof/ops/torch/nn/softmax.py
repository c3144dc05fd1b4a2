"""Softmax and log-softmax, forward and backward.

An element costs: the maximum 1, its subtraction 1, exp 20, the sum 1, the division (or, for
log-softmax, the subtraction of the sum's logarithm) 1. Bytes: read once, written once, though
kernels for long rows read twice.
"""

from pyprof.marker import Tensor, Value
from pyprof.ops.examples import NN, Example, b8, f16
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "softmax"

_X = f16(2, 3)
_FORWARD = TRANSCENDENTAL + 4
# softmax: y * (go - sum(go * y)): 4. log-softmax: go - exp(y) * sum(go): 3 and an exp.
_BACKWARD = {"softmax": 4, "log_softmax": TRANSCENDENTAL + 3}
_NAMES = ("softmax", "log_softmax", "softmin")


def _out(x: Tensor, a: Args) -> Tensor:
    wider: Value = a.values.get("half_to_float")
    return fresh(x.shape, "float32" if wider is True else a.dtype() or x.dtype)


# 2 * 3 elements of 24 operations; 6 read and 6 written of 2 bytes
@op(
    *_NAMES,
    signature="Tensor input, int dim, int stacklevel, dtype dtype",
    example=Example((_X,), flops=144, bytes=24, kwargs={"dim": -1}, mod=NN),
)
@op(
    *("aten::log_softmax", "aten::softmax"),
    signature="Tensor input, int dim, dtype dtype",
    example=Example((_X, -1, None), flops=144, bytes=24),
)
# half_to_float: 6 read of 2 bytes, 6 written of 4
@op(
    *("aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax"),
    signature="Tensor input, int dim, bool half_to_float",
    example=Example((_X, -1, True), flops=144, bytes=36),
)
# 6 * 24; 6 read, 6 written of 2 bytes and the mask's 6
@op(
    "aten::_masked_softmax",
    signature="Tensor input, Mask mask, int dim",
    example=Example((_X, b8(2, 3), -1), flops=144, bytes=30),
)
def softmax(a: Args) -> Work:
    """Every element is read, exponentiated and scaled by its row's sum."""
    x = a.tensor("input")
    negated = a.op == "softmin"
    return Work((_FORWARD + negated) * x.numel, (x, *a.present("mask")), (_out(x, a),))


# 6 * 4; go 6 + y 6 + gradient 6 = 18 elements of 2 bytes
@op(*_NAMES, direction=BPROP, flops=24, bytes=36)
@op(
    *("aten::_softmax", "aten::_log_softmax", "aten::softmax", "aten::log_softmax"),
    direction=BPROP,
    signature="Tensor input, int dim, bool half_to_float",
    example=Example((_X, -1, False), flops=24, bytes=36),
)
# As above: 6 * 23 for log-softmax, 18 elements of 2 bytes
@op(
    *("aten::_log_softmax_backward_data", "aten::_softmax_backward_data"),
    signature="Tensor grad_output, Tensor output, int dim, dtype input_dtype",
    example=Example((_X, _X, -1, 5), flops=138, bytes=36),
)
# 6 * 4; go 6, y 6 read, 6 written of 2 bytes and the mask's 6
@op(
    "aten::_masked_softmax_backward",
    signature="Tensor grad_output, Tensor output, Mask mask, int dim",
    example=Example((_X, _X, b8(2, 3), -1), flops=24, bytes=42),
)
def softmax_backward(a: Args) -> Work:
    """The incoming gradient and the result are read, the gradient is written."""
    each = _BACKWARD["log_softmax" if "log" in a.op else "softmax"]
    if (y := a.optional("output")) is None:
        x = a.tensor("input")
        y = _out(x, a)
        return Work(each * x.numel, (y, y), (like(x),))
    go = a.tensor("grad_output")
    dtype = a.dtype("input_dtype") if a.known("input_dtype") else None
    reads = (go, y, *a.present("mask"))
    return Work(each * go.numel, reads, (fresh(go.shape, dtype or go.dtype),))
