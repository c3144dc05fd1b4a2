"""Ops over lists of tensors: foreach arithmetic, fused optimizer steps, gradient scaling.

A list counts as one tensor with all its elements; a list too long to be written out counts by its
sum. Bytes: each list read once, what is updated written once.
"""

from pyprof.marker import Summary, Tensor, Value
from pyprof.ops.examples import Example, f32, i32
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise import promoted_dtype
from pyprof.ops.torch.tensors.pointwise_rules import RULES, TRANSCENDENTAL
from pyprof.ops.torch.tensors.reductions import norm_cost
from pyprof.ops.work import Args, Work, fresh, like, require, size

FAMILY = "optimizer"

_PARTS = (f32(4, 6), f32(6))
_SCALE = f32()


def elements(tensors: tuple[Tensor, ...]) -> int:
    """Count the elements of all the tensors of a list."""
    return sum(tensor.numel for tensor in tensors)


def _lists(a: Args, name: str) -> list[tuple[Tensor, ...]]:
    """Return the lists of tensors among the values, without numbers and lists of numbers."""
    lists = [
        a.replaced(one=value).tensors("one")
        for value in a.listed(name)
        if isinstance(value, Summary)
        or (isinstance(value, tuple) and bool(value) and isinstance(value[0], Tensor))
    ]
    if not lists:
        raise Unknown("tensor lists not recorded")
    return lists


_SCALED = ("_foreach_add", "_foreach_sub")


# 30 elements: x + alpha * y 2 * 30; 30 and 30 read, 30 written of 4 bytes
@op(
    *(f"_foreach_{name}" for name in RULES),
    signature="Value[] lists",
    example=Example(
        (_PARTS, _PARTS), flops=60, bytes=360, kwargs={"alpha": 0.5}, op="_foreach_add_"
    ),
)
def foreach(a: Args) -> Work:
    """The pointwise rule for every element of every tensor."""
    lists = _lists(a, "lists")
    rule = RULES[a.op.removeprefix("_foreach_")]
    numbers = [value for value in a.listed("lists") if isinstance(value, (int, float))]
    # the third argument of ATen's sum of two lists
    alpha = a.values.get("alpha", numbers[-1] if numbers and a.op in _SCALED else 1)
    scaled = len(lists) > 1 and isinstance(alpha, (int, float)) and alpha != 1
    reads = tuple(tensor for tensors in lists for tensor in tensors)
    flops = (rule.flops + scaled) * elements(lists[0])
    return Work(flops, reads, tuple(map(like, lists[0])))


_REDUCED = {"_foreach_powsum": (2, 0), "_foreach_max": (1, 0)}


# 30 comparisons; 30 read and 2 written of 4 bytes
@op("_foreach_max", signature="Tensor[] lists", example=Example((_PARTS,), flops=30, bytes=128))
# 30 squares and sums and 2 roots of 20
@op(
    *("_foreach_norm", "_foreach_powsum"),
    signature="Tensor[] lists, Number ord",
    example=Example((_PARTS, 2), flops=100, bytes=128),
)
def foreach_norm(a: Args) -> Work:
    """A number for each tensor."""
    each, last = _REDUCED.get(a.op) or norm_cost(a.values.get("ord"))
    value = a.values.get("lists")
    tensors = a.tensors("lists")
    count = value.length if isinstance(value, Summary) else len(tensors)
    out = fresh((count,), tensors[0].dtype if tensors else None)
    return Work(each * elements(tensors) + last * count, tensors, (out,))


# 30 read, 30 written of 4 bytes
@op(
    "_foreach_copy",
    family="copy",
    signature="Value[] lists",
    example=Example((_PARTS, _PARTS), flops=0, bytes=240, op="_foreach_copy_", mod="aten"),
)
def foreach_copy(a: Args) -> Work:
    """The second list is written over the first."""
    lists = _lists(a, "lists")
    if len(lists) < 2:  # noqa: PLR2004 - to and from
        raise Unknown("tensor lists not recorded")
    return Work(0, lists[1], lists[0])


# 30 read, 30 written of 4 bytes
@op(
    "_foreach_clone",
    signature="Tensor[] lists",
    example=Example((_PARTS,), flops=0, bytes=240, mod="aten"),
)
def foreach_clone(a: Args) -> Work:
    """Every tensor is copied."""
    tensors = a.tensors("lists")
    return Work(0, tensors, tuple(map(like, tensors)))


# 24 and 6 read; in chunks of 2: 4 rows, and 6 of one, are 2 * 12 and 2 * 3 written of 4 bytes
@op(
    "_chunk_cat",
    signature="Tensor[] lists, int dim, int num_chunks",
    example=Example((_PARTS, 0, 2), flops=0, bytes=240, mod="aten"),
)
def chunk_cat(a: Args) -> Work:
    """Each tensor cut in equal chunks, zeros at the end, laid side by side (FSDP's gradients)."""
    tensors, dim, chunks = a.tensors("lists"), a.integer("dim", 0), a.integer("num_chunks", 1)
    require(chunks >= 1)
    padded = 0
    for tensor in tensors:
        length = max(1, size(tensor, dim))
        padded += tensor.numel // length * (-(-length // chunks) * chunks)
    return Work(0, tensors, (fresh((padded,), promoted_dtype(tensors)),))


# 30 written of 4 bytes
@op(
    "_foreach_zero",
    signature="Tensor[] lists",
    example=Example((_PARTS,), flops=0, bytes=120, op="_foreach_zero_", mod="aten"),
)
def foreach_zero(a: Args) -> Work:
    """Every element is written."""
    return Work(0, (), a.tensors("lists"))


# 30 unscaled and checked: 2 * 30; 30 read, 30 written of 4 bytes
@op(
    "_amp_foreach_non_finite_check_and_unscale",
    signature="Tensor[] lists, Tensor? found_inf, Tensor? inv_scale",
    example=Example(
        (_PARTS, None, None),
        flops=60,
        bytes=240,
        op="_amp_foreach_non_finite_check_and_unscale_",
        mod="aten",
    ),
)
def unscale(a: Args) -> Work:
    """Gradients times the inverse scale, looked through for infinities."""
    tensors = a.tensors("lists")
    return Work(2 * elements(tensors), tensors, tensors)


# one product; three numbers read, two written: 4 bytes each
@op(
    "_amp_update_scale",
    signature="Tensor input, Tensor growth_tracker, Tensor found_inf",
    example=Example(
        (_SCALE, i32(), _SCALE, 2.0, 0.5, 2000),
        flops=1,
        bytes=20,
        op="_amp_update_scale_",
        mod="aten",
    ),
)
def amp_update_scale(a: Args) -> Work:
    """The gradient scaler's own factor and its count of good steps."""
    scale, tracker = a.tensor("input"), a.tensor("growth_tracker")
    return Work(1, (scale, tracker, a.tensor("found_inf")), (scale, tracker))


# FLOPs per element, without weight decay. Adam: m = b1 m + (1 - b1) g 3, v = b2 v + (1 - b2) g g 4,
# root, division by the correction and eps 2 more than a root, p -= step m / d 3
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
    example=Example(
        (_PARTS, _PARTS, _PARTS, _PARTS, (), (f32(), f32())),
        flops=960,
        bytes=848,
        op="_fused_adam_",
        mod="aten",
    ),
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
    example=Example((_PARTS, _PARTS, _PARTS), flops=120, bytes=600, op="_fused_sgd_", mod="aten"),
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
    "fused_adam_cuda.adam",
    signature="Value[] operands",
    example=Example((*(f32(4, 6),) * 4, 1e-3, 0.9), flops=768, bytes=672),
)
def apex_adam(a: Args) -> Work:
    """Parameter, a half-precision copy if there is one, both moments, gradient."""
    tensors = tuple(v for v in a.listed("operands") if isinstance(v, Tensor) and v.numel)
    require(len(tensors) in (4, 5))
    param, moments, grad = tensors[0], tensors[-3:-1], tensors[-1]
    copy = tensors[1:-3]
    read = (param, *moments, grad)
    return Work(_ADAM * param.numel, read, (param, *copy, *moments))


# lists in a multi-tensor kernel, how many of them are read, which is the first that is written,
# operations an element
_MULTI = {
    "multi_tensor_adam": (4, 4, 1, _ADAM),  # g, p, m, v
    "multi_tensor_scale": (2, 1, 1, 2),  # in, out
    "multi_tensor_axpby": (3, 2, 2, 4),  # x, y, out
    "multi_tensor_l2norm": (1, 1, 1, 2),
    "multi_tensor_sgd": (3, 3, 1, 4),  # g, p, momentum; perhaps a copy of p in half precision
}


# 30 * 32; four lists read, p, m, v written: 7 * 30 of 4 bytes
@op(
    *(f"amp_C.{name}" for name in _MULTI),
    signature="Value[] operands",
    example=Example((65536, i32(1), (_PARTS, _PARTS, _PARTS, _PARTS)), flops=960, bytes=840),
)
def apex_multi_tensor(a: Args) -> Work:
    """Lists of equal length after the chunk size and the overflow flag."""
    operands = a.listed("operands")
    tensors = _flat(operands)[1:]  # the flag first
    fewest, read, written, each = _MULTI[a.op]
    listed = (value for value in operands if isinstance(value, tuple))
    lists = next((len(v) for v in listed if all(isinstance(item, tuple) for item in v)), 0)
    count = max(fewest, lists)
    require(tensors and not len(tensors) % count)
    length = len(tensors) // count
    reads, out = tensors[: read * length], tensors[written * length :]
    return Work(each * elements(tensors[:length]), reads, out)


def _flat(values: tuple[Value, ...]) -> tuple[Tensor, ...]:
    operands: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            operands.append(value)
        elif isinstance(value, tuple):
            operands += _flat(value)
        elif isinstance(value, Summary):
            raise Unknown("tensor list too long to be recorded")
    return tuple(operands)
