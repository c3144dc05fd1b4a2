"""Tensors that are made or filled: zeros, ones, full, arange, linspace, eye.

Bytes: written once, nothing read. FLOPs: only what a sequence computes. Where no dtype is named,
torch's own default is taken: float32, int64 for whole numbers, the tensor's for `*_like`.
"""

import math

from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh

FAMILY = "fill"

_X = f16(2, 3)
FACTORY = "dtype dtype, any layout, any device, any pin"


# 6 written of 2 bytes
@op(
    *("fill", "zero", "zeros_like", "ones_like", "full_like", "fill_diagonal"),
    signature="Tensor input, Number value, *, dtype dtype",
    example=Example((_X, 0), flops=0, bytes=12, op="fill_", mod="Tensor"),
)
@op(
    *("aten::zeros_like", "aten::ones_like"),
    signature="Tensor input, dtype dtype",
    # 6 written of 4 bytes
    example=Example((_X, 6, 0), flops=0, bytes=24),
)
def fill(a: Args) -> Work:
    """Written, not read."""
    x = a.tensor("input")
    asked = a.dtype() if a.known("dtype") else None
    return Work(0, (), (fresh(x.shape, asked or x.dtype),))


# 6 written of 4 bytes, torch's default dtype
@op(
    *("zeros", "ones"),
    signature="Size size, *, dtype dtype",
    example=Example(((2, 3),), flops=0, bytes=24),
)
@op(
    "full",
    signature="Size size, Number fill_value, *, dtype dtype",
    example=Example(((2, 3), 1.0), flops=0, bytes=24),
)
@op(
    "aten::scalar_tensor",
    signature="Number fill_value, dtype dtype",
    example=Example((1.0, 6), flops=0, bytes=4),
)
@op(
    *("new_zeros", "new_ones", "new_full"),
    signature="Tensor input, Size size, Number fill_value, *, dtype dtype",
    # 6 written of 2 bytes
    example=Example((_X, (2, 3)), flops=0, bytes=12, mod="Tensor"),
)
@op(
    *("aten::new_zeros", "aten::new_ones"),
    signature="Tensor input, Size size, dtype dtype",
    example=Example((_X, (2, 3), None), flops=0, bytes=12),
)
def filled(a: Args) -> Work:
    """Written, not read; the dtype is the tensor's, or the number's kind, unless one is named."""
    given = a.optional("input")
    kind = dtypes.of_number(a.values.get("fill_value", 0.0))
    default = given.dtype if given is not None else kind
    shape = a.sizes("size") if "size" in a.values else ()
    return Work(0, (), (fresh(shape, a.dtype() or default),))


# 10 integers of 8 bytes
@op(
    "arange",
    signature=(
        f"Number start, Number end, Number step, *, {FACTORY}",
        f"Number start, Number end, *, {FACTORY}",
        f"Number start, *, {FACTORY}",
    ),
    example=Example((10,), flops=10, bytes=80),
)
def arange(a: Args) -> Work:
    """One addition an element."""
    bounds = [a.value(name) for name in ("start", "end", "step") if a.given(name)]
    numbers = [value for value in bounds if isinstance(value, (int, float))]
    if not numbers or len(numbers) != len(bounds):
        raise Unknown("range not recorded")
    dtype = a.dtype() or ("float32" if any(isinstance(n, float) for n in numbers) else "int64")
    if not dtypes.is_floating(dtype):
        numbers = [int(number) for number in numbers]
    first, last = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) > 2 else 1  # noqa: PLR2004 - start, end, step
    count = max(0, math.ceil((last - first) / step))
    return Work(count, (), (fresh((count,), dtype),))


# 5 numbers of 4 bytes
@op(
    *("linspace", "logspace"),
    signature=(
        f"Number start, Number end, int steps, *, {FACTORY}",
        f"Number start, Number end, int steps, float base, *, {FACTORY}",
    ),
    example=Example((0.0, 1.0, 5), flops=10, bytes=20),
)
def linspace(a: Args) -> Work:
    """A multiplication and an addition an element."""
    count = a.integer("steps", 100)
    return Work(2 * count, (), (fresh((count,), a.dtype() or "float32"),))


# 3 * 3 written of 4 bytes
@op(
    "eye",
    signature=(f"int n, int m, *, {FACTORY}", f"int n, *, {FACTORY}"),
    example=Example((3,), flops=0, bytes=36),
)
def eye(a: Args) -> Work:
    """Zeros, and ones on the diagonal."""
    rows = a.integer("n", 0)
    return Work(0, (), (fresh((rows, a.integer("m", rows)), a.dtype() or "float32"),))
