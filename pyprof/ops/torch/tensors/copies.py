"""Copies, casts, and the joining of tensors.

No arithmetic: a conversion is not counted as an operation. Bytes: the source read once, the
destination written once.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16, f32, i64
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise import promoted_dtype
from pyprof.ops.work import Args, Work, fresh, like, require, size

FAMILY = "copy"

_X = f16(2, 3)
_Y = f32(2, 3)

_KINDS = "half float double byte char short int long bool bfloat16 cfloat cdouble chalf"
_CASTS = {
    name: dtypes.canonical(kind)
    for kind in _KINDS.split()
    for name in (kind, f"_cast_{kind.capitalize()}")
}
_WITHOUT_LAYOUT = 5
"""How many arguments follow the tensor if none is a layout, a number like that of a dtype."""
_SAME = (
    "clone contiguous reshape flatten cuda cpu pin_memory roll fftshift ifftshift flip fliplr "
    "flipud rot90 repeat tile tril triu reshape_as _reshape_copy _to_cpu channel_shuffle "
    "native_channel_shuffle pixel_shuffle pixel_unshuffle"
)


# 6 read of 4 bytes, 6 written of 2
@op(
    *("copy_", "copy", "_foreach_copy_one", "aten::_copy_from", "aten::_copy_from_and_resize"),
    signature="Tensor input, Tensor source, bool non_blocking",
    example=Example((_X, _Y, True), flops=0, bytes=36, mod="Tensor"),
)
def copy(a: Args) -> Work:
    """The source, broadcast, is written over the destination."""
    x, source = a.tensor("input"), a.tensor("source")
    return Work(0, (source,), (x,))


# 6 read and 6 written of 2 bytes
@op(
    *_SAME.split(),
    signature="Tensor input, Value[] rest",
    example=Example((_X,), flops=0, bytes=24, op="contiguous", mod="Tensor"),
)
def duplicate(a: Args) -> Work:
    """A copy in the same dtype; if none was needed, there is no kernel to cost."""
    x = a.tensor("input")
    copies = math.prod(_repeats(a)) if a.op in ("repeat", "tile") else 1
    return Work(0, (x,), (fresh((copies, *x.shape), x.dtype),))


def _repeats(a: Args) -> tuple[int, ...]:
    rest = a.listed("rest")
    asked = rest[0] if rest and isinstance(rest[0], tuple) else rest
    repeats = tuple(item for item in asked if isinstance(item, int))
    if len(repeats) != len(asked):
        raise Unknown("repeats not recorded")
    return repeats


# the copied gradient: 6 read, 6 written of 2 bytes
@op(
    *("clone", "contiguous", "roll", "fftshift", "ifftshift", "flip", "fliplr", "flipud", "rot90"),
    *("tril", "triu", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
    direction=BPROP,
    flops=0,
    bytes=24,
)
def duplicate_backward(a: Args) -> Work:
    """As the forward."""
    x = like(a.tensor("input"))
    return Work(0, (x,), (x,))


# (2, 3) repeated 4 times: 24 additions; 24 read, 6 written of 2 bytes
@op(
    *("repeat", "tile"),
    direction=BPROP,
    example=Example((_X, 2, 2), flops=24, bytes=60, mod="Tensor"),
)
def repeat_backward(a: Args) -> Work:
    """The copies' gradients are added."""
    x = a.tensor("input")
    go = fresh((math.prod(_repeats(a)), *x.shape), x.dtype)
    return Work(go.numel, (go,), (like(x),))


# 6 read of 2 bytes, 6 written of 4
@op(
    *_CASTS,
    *("to", "type", "type_as", "_to_copy", "_autocast_to_reduced_precision"),
    "_autocast_to_full_precision",
    signature=("Tensor input, Tensor! other", "Tensor input, Value[] rest"),
    example=Example((_X,), flops=0, bytes=36, op="float", mod="Tensor"),
)
def cast(a: Args) -> Work:
    """A copy in another dtype."""
    x = a.tensor("input")
    return Work(0, (x,), (fresh(x.shape, _cast_dtype(a, x)),))


# the gradient goes back: 6 read of 4 bytes, 6 written of 2
@op(*_CASTS, *("to", "type_as", "_to_copy"), direction=BPROP, flops=0, bytes=36)
def cast_backward(a: Args) -> Work:
    """The gradient is cast back."""
    x = a.tensor("input")
    return Work(0, (fresh(x.shape, _cast_dtype(a, x)),), (like(x),))


def _cast_dtype(a: Args, x: Tensor) -> str | None:
    if a.op in _CASTS:
        return _CASTS[a.op]
    other = a.optional("other")
    if other is not None:
        return other.dtype
    asked, rest = a.values.get("dtype"), a.listed("rest")
    if len(rest) > _WITHOUT_LAYOUT:
        return x.dtype if rest[0] is None else dtypes.canonical(rest[0])
    for value in (asked, *rest):
        if isinstance(value, bool):
            continue
        if (name := dtypes.canonical(value)) is not None:
            return name
    return x.dtype if rest and not asked and a.op == "to" else None


# --- joining ------------------------------------------------------------------------------------
# 6 of 2 bytes and 6 of 4 read, 12 of 4 written
@op(
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
    *("row_stack", "_cat"),
    signature="Tensor[] tensors",
    example=Example((_X, _Y), flops=0, bytes=84),
)
def cat(a: Args) -> Work:
    """Every tensor is read and written at its place."""
    tensors = a.tensors("tensors")
    total = sum(tensor.numel for tensor in tensors)
    return Work(0, tensors, (fresh((total,), promoted_dtype(tensors)),))


# the pieces of the gradient are views of it
@op(
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
    *("row_stack", "_cat"),
    direction=BPROP,
    work=False,
    flops=0,
    bytes=0,
)
def cat_backward(a: Args) -> Work:
    """Nothing: each gradient is a view of the incoming one."""
    a.tensors("tensors")
    return Work(0)


# --- nested tensors of the jagged layout ----------------------------------------------------------
# rows of 3 and 5 in 2 of 5: 8 * 6 read, 10 * 6 written of 2 bytes, 3 offsets of 8
@op(
    "aten::_jagged_to_padded_dense_forward",
    signature="Tensor values, Tensor[] offsets, int[] max_lengths, Number padding_value",
    example=Example((f16(8, 6), (i64(3),), (5,), 0.0), flops=0, bytes=240),
)
def jagged_to_padded(a: Args) -> Work:
    """Rows of unequal number are copied into a dense tensor, and the rest is padded."""
    values, offsets = a.tensor("values"), _offsets(a)
    shape = (size(offsets[0], 0) - 1, *a.sizes("max_lengths"), *values.shape[1:])
    return Work(0, (values, *offsets), (like(values, shape),))


# 8 * 6 read and written of 2 bytes, 3 offsets of 8
@op(
    "aten::_padded_dense_to_jagged_forward",
    signature="Tensor dense, Tensor[] offsets, int total_L",
    example=Example((f16(2, 5, 6), (i64(3),), 8), flops=0, bytes=216),
)
def padded_to_jagged(a: Args) -> Work:
    """Rows that are not padding are copied one after the other."""
    dense, offsets = a.tensor("dense"), _offsets(a)
    if not a.given("total_L"):
        raise Unknown("total_L not recorded")
    rows = like(dense, (a.integer("total_L", 0), *dense.shape[1 + len(offsets) :]))
    return Work(0, (rows, *offsets), (rows,))


def _offsets(a: Args) -> tuple[Tensor, ...]:
    """Return the offsets; traces have no types of tensors in lists."""
    offsets = tuple(fresh(item.shape, item.dtype or "int64") for item in a.tensors("offsets"))
    require(offsets)
    return offsets
