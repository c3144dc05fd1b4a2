"""Copies, casts, fills and allocations that are filled, and the joining of tensors.

No arithmetic: a conversion is not counted as an operation. Bytes: the source read once, the
destination written once.
"""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops import dtypes
from pyprof.ops.pointwise import promoted_dtype
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like

_X = Tensor((2, 3), "float16")
_Y = Tensor((2, 3), "float32")

_CASTS = {
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
}
_SAME = (
    "clone contiguous reshape flatten cuda cpu pin_memory roll flip fliplr flipud rot90 repeat "
    "tile tril triu reshape_as _reshape_copy _to_cpu channel_shuffle pixel_shuffle "
    "pixel_unshuffle"
)


# 6 read of 4 bytes, 6 written of 2
@op(
    *("copy", "copy_", "_foreach_copy_one", "aten::_copy_from", "aten::_copy_from_and_resize"),
    signature="Tensor input, Tensor source, bool non_blocking",
    example=Call("Tensor", "copy_", (_X, _Y, True)),
    flops=0,
    bytes=36,
)
def copy(a: Args) -> Work:
    """The source, broadcast, is written over the destination."""
    x, source = a.tensor("input"), a.tensor("source")
    return Work(0, (source,), (x,))


# 6 read and 6 written of 2 bytes
@op(
    *_SAME.split(),
    signature="Tensor input, Value[] rest",
    example=Call("Tensor", "contiguous", (_X,)),
    flops=0,
    bytes=24,
)
def duplicate(a: Args) -> Work:
    """A copy in the same dtype; where none was needed, no kernel asks for its cost."""
    x = a.tensor("input")
    copies = math.prod(_repeats(a)) if a.op in ("repeat", "tile") else 1
    return Work(0, (x,), (fresh((copies, *x.shape), x.dtype),))


def _repeats(a: Args) -> tuple[int, ...]:
    rest = a.listed("rest")
    asked = rest[0] if rest and isinstance(rest[0], tuple) else rest
    found = tuple(item for item in asked if isinstance(item, int))
    if not found or len(found) != len(asked):
        raise Unknown("repeats not recorded")
    return found


# the copied gradient: 6 read, 6 written of 2 bytes
@op(
    *("clone", "contiguous", "roll", "flip", "tril", "triu"),
    direction=BPROP,
    signature="Tensor input, Value[] rest",
    example=Call("Tensor", "clone", (_X,)),
    flops=0,
    bytes=24,
)
def duplicate_backward(a: Args) -> Work:
    """As the forward."""
    x = like(a.tensor("input"))
    return Work(0, (x,), (x,))


# 6 read of 2 bytes, 6 written of 4
@op(
    *_CASTS,
    *("to", "type", "type_as", "_to_copy", "_autocast_to_reduced_precision"),
    *("_autocast_to_full_precision",),
    signature=("Tensor input, Tensor! other", "Tensor input, Value[] rest"),
    example=Call("Tensor", "float", (_X,)),
    flops=0,
    bytes=36,
)
def cast(a: Args) -> Work:
    """A copy in another dtype."""
    x = a.tensor("input")
    return Work(0, (x,), (fresh(x.shape, _cast_dtype(a, x)),))


# the gradient goes back: 6 read of 4 bytes, 6 written of 2
@op(
    *_CASTS,
    *("to", "type_as", "_to_copy"),
    direction=BPROP,
    signature=("Tensor input, Tensor! other", "Tensor input, Value[] rest"),
    example=Call("Tensor", "float", (_X,)),
    flops=0,
    bytes=36,
)
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
    asked = a.values.get("dtype")
    for value in (asked, *a.listed("rest")):
        if isinstance(value, bool):
            continue
        if (name := dtypes.canonical(value)) is not None:
            return name
    return x.dtype if a.listed("rest") and not asked and a.op == "to" else None


# --- joining ------------------------------------------------------------------------------------
# 6 of 2 bytes and 6 of 4 read, 12 of 4 written
@op(
    *("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"),
    *("row_stack", "_cat"),
    signature="Tensor[] tensors, int dim",
    example=Call("torch", "cat", (_X, _Y)),
    flops=0,
    bytes=84,
)
def cat(a: Args) -> Work:
    """Every tensor is read and written at its place."""
    tensors = a.tensors("tensors")
    total = sum(tensor.numel for tensor in tensors)
    return Work(0, tensors, (fresh((total,), promoted_dtype(tensors)),))


# the pieces of the gradient are views of it
@op(
    *("cat", "concat", "stack"),
    direction=BPROP,
    signature="Tensor[] tensors, int dim",
    work=False,
    example=Call("torch", "cat", ((_X, _Y),)),
    flops=0,
    bytes=0,
)
def cat_backward(a: Args) -> Work:
    """Nothing: each gradient is a view of the incoming one."""
    a.tensors("tensors")
    return Work(0)


# --- fills --------------------------------------------------------------------------------------
# 6 written of 2 bytes
@op(
    *("fill", "zero", "zeros_like", "ones_like", "full_like", "fill_diagonal"),
    signature="Tensor input, Number value, *, dtype dtype",
    example=Call("Tensor", "fill_", (_X, 0)),
    flops=0,
    bytes=12,
)
def fill(a: Args) -> Work:
    """Written, not read."""
    x = a.tensor("input")
    asked = a.dtype() if a.known("dtype") else None
    return Work(0, (), (fresh(x.shape, asked or x.dtype),))


# 6 written of 4 bytes, the dtype that torch takes where none is named
@op(
    *("zeros", "ones"),
    signature="int[] size, *, dtype dtype",
    example=Call("torch", "zeros", ((2, 3),)),
    flops=0,
    bytes=24,
)
@op(
    "full",
    signature="int[] size, Number fill_value, *, dtype dtype",
    example=Call("torch", "full", ((2, 3), 1.0)),
    flops=0,
    bytes=24,
)
def filled(a: Args) -> Work:
    """Written, not read."""
    default = dtypes.of_number(a.values.get("fill_value", 0.0))
    return Work(0, (), (fresh(_sizes(a), a.dtype() or default),))


@op(
    *("new_zeros", "new_ones", "new_full"),
    signature="Tensor input, int[] size, Number fill_value, *, dtype dtype",
    example=Call("Tensor", "new_zeros", (_X, (2, 3))),
    flops=0,
    bytes=12,  # 6 written of 2 bytes
)
def new_filled(a: Args) -> Work:
    """Written, not read; the dtype is the tensor's unless one is named."""
    return Work(0, (), (fresh(_sizes(a), a.dtype() or a.tensor("input").dtype),))


def _sizes(a: Args) -> tuple[int, ...]:
    asked = a.value("size")
    found = asked if isinstance(asked, tuple) else (asked,)
    sizes = tuple(item for item in found if isinstance(item, int))
    if len(sizes) != len(found):
        raise Unknown("size not recorded")
    return sizes


# 10 integers of 8 bytes
@op(
    "arange",
    signature="Number start, Number end, Number step, *, dtype dtype",
    example=Call("torch", "arange", (10,)),
    flops=10,
    bytes=80,
)
def arange(a: Args) -> Work:
    """One addition an element."""
    bounds = [a.value(name) for name in ("start", "end", "step") if a.given(name)]
    numbers = [value for value in bounds if isinstance(value, (int, float))]
    if not numbers or len(numbers) != len(bounds):
        raise Unknown("range not recorded")
    first, last = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) > 2 else 1  # noqa: PLR2004 - start, end, step
    count = max(0, math.ceil((last - first) / step))
    whole = all(isinstance(number, int) for number in numbers)
    return Work(count, (), (fresh((count,), a.dtype() or ("int64" if whole else "float32")),))


# 5 numbers of 4 bytes
@op(
    *("linspace", "logspace"),
    signature="Number start, Number end, int steps, *, dtype dtype",
    example=Call("torch", "linspace", (0.0, 1.0, 5)),
    flops=10,
    bytes=20,
)
def linspace(a: Args) -> Work:
    """A multiplication and an addition an element."""
    count = a.integer("steps", 100)
    return Work(2 * count, (), (fresh((count,), a.dtype() or "float32"),))


# 3 * 3 written of 4 bytes
@op(
    "eye",
    signature="int n, int m, *, dtype dtype",
    example=Call("torch", "eye", (3,)),
    flops=0,
    bytes=36,
)
def eye(a: Args) -> Work:
    """Zeros, and ones on the diagonal."""
    rows = a.integer("n", 0)
    return Work(0, (), (fresh((rows, a.integer("m", rows)), a.dtype() or "float32"),))
