"""Fused optimizer steps, torch's and apex's, over lists of tensors.

A list counts as one tensor with all its elements; a list too long to be written out counts by its
sum. Bytes: each list read once, what is updated written once.
"""

from __future__ import annotations

from pyprof.marker import Call, Summary, Tensor, Value
from pyprof.ops.foreach import elements
from pyprof.ops.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work

FAMILY = "optimizer"

_PARTS = (Tensor((4, 6), "float32"), Tensor((6,), "float32"))
_STEPS = (Tensor((), "float32"), Tensor((), "float32"))


# Operations an element, weight decay apart.
# Adam: m = b1 m + (1 - b1) g 3, v = b2 v + (1 - b2) g g 4, root, division by the correction and
# eps 2 more than a root, p -= step m / d 3
_ADAM = 3 + 4 + TRANSCENDENTAL + 2 + 3
_FUSED = {
    "_fused_adam": _ADAM,
    "_fused_adamw": _ADAM + 1,  # p *= 1 - lr * decay
    "_fused_adagrad": TRANSCENDENTAL + 6,  # s += g g, p -= lr g / (root + eps)
    "_fused_sgd": 4,  # b = momentum b + g, p -= lr b
}


# 30 * 32; p, g, m, v read, p, m, v written: 7 * 30 of 4 bytes; steps of 2 numbers, 8 bytes
@op(
    *("_fused_adam", "_fused_adamw"),
    signature=(
        "Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs,"
        "Tensor[] max_exp_avg_sqs, Tensor[] state_steps"
    ),
    example=Call("aten", "_fused_adam_", (_PARTS, _PARTS, _PARTS, _PARTS, (), _STEPS)),
    flops=960,
    bytes=848,
)
def fused_adam(a: Args) -> Work:
    """One step for all parameters: moments, their roots, the update."""
    params, grads = a.tensors("params"), a.tensors("grads")
    moments = (*a.tensors("exp_avgs"), *a.tensors("exp_avg_sqs"))
    largest = a.tensors("max_exp_avg_sqs") if a.given("max_exp_avg_sqs") else ()
    steps = a.tensors("state_steps") if a.given("state_steps") else ()
    written = (*params, *moments, *largest)
    flops = (_FUSED[a.op] + bool(largest)) * elements(params)
    return Work(flops, (*written, *grads, *steps), written)


# 30 * 4; p, g, b read, p, b written: 5 * 30 of 4 bytes
@op(
    *("_fused_sgd", "_fused_adagrad"),
    signature="Tensor[] params, Tensor[] grads, Tensor[] state",
    example=Call("aten", "_fused_sgd_", (_PARTS, _PARTS, _PARTS)),
    flops=120,
    bytes=600,
)
def fused_sgd(a: Args) -> Work:
    """One step for all parameters; without momentum p -= lr g alone."""
    params, grads = a.tensors("params"), a.tensors("grads")
    state = a.tensors("state") if a.given("state") else ()
    each = _FUSED[a.op] if state else 2
    written = (*params, *state)
    return Work(each * elements(params), (*written, *grads), written)


# --- apex ---------------------------------------------------------------------------------------
# 24 * 32; p, m, v and g read, p, m, v written: 7 * 24 of 4 bytes
@op(
    *("fused_adam_cuda.adam",),
    signature="Value[] operands",
    example=Call("fused_adam_cuda", "adam", (*(Tensor((4, 6), "float32"),) * 4, 1e-3, 0.9)),
    flops=768,
    bytes=672,
)
def apex_adam(a: Args) -> Work:
    """Parameter, a half-precision copy where there is one, both moments, gradient."""
    tensors = tuple(v for v in a.listed("operands") if isinstance(v, Tensor) and v.numel)
    if len(tensors) not in (4, 5):
        raise Unknown("arguments do not fit the op")
    param, moments, grad = tensors[0], tensors[-3:-1], tensors[-1]
    copy = tensors[1:-3]
    read = (param, *moments, grad)
    return Work(_ADAM * param.numel, read, (param, *copy, *moments))


# lists in a multi-tensor kernel, which of them are written (from the end), operations an element
_MULTI = {
    "multi_tensor_adam": (4, 3, _ADAM),  # g, p, m, v
    "multi_tensor_scale": (2, 1, 2),
    "multi_tensor_axpby": (3, 1, 4),
    "multi_tensor_l2norm": (1, 0, 2),
    "multi_tensor_sgd": (3, 2, 4),  # g, p, momentum
}


# 30 * 32; four lists read, p, m, v written: 7 * 30 of 4 bytes
@op(
    *(f"amp_C.{name}" for name in _MULTI),
    signature="Value[] operands",
    example=Call(
        "amp_C",
        "multi_tensor_adam",
        (65536, Tensor((1,), "int32"), (_PARTS, _PARTS, _PARTS, _PARTS)),
    ),
    flops=960,
    bytes=840,
)
def apex_multi_tensor(a: Args) -> Work:
    """Lists of equal length behind the chunk size and the overflow flag."""
    tensors = _flat(a.listed("operands"))[1:]  # the flag first
    count, written, each = _MULTI[a.op]
    if not tensors or len(tensors) % count:
        raise Unknown("arguments do not fit the op")
    length = len(tensors) // count
    out = tensors[(count - written) * length :]
    reads = tensors[:length] if a.op == "multi_tensor_scale" else tensors
    return Work(each * elements(tensors[:length]), reads, out)


def _flat(values: tuple[Value, ...]) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, tuple):
            found += _flat(value)
        elif isinstance(value, Summary):
            raise Unknown("tensor list too long to be recorded")
    return tuple(found)
