"""The inverse of max pooling, and pooling whose windows are drawn.

Unpooling puts each value where its index says, among zeros: no arithmetic. A fractional window has
as many comparisons as elements, as in `pooling`. Bytes: values and indices read once, the result
written once.
"""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops.pooling import rank_of
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "pool"

_SMALL = Tensor((2, 3, 4, 4), "float16")
_PLACES = Tensor((2, 3, 4, 4), "int64")
_IMAGE = Tensor((2, 3, 8, 8), "float16")
_NAMES = tuple(f"torch.nn.functional.max_unpool{rank}d" for rank in (1, 2, 3))
_ATEN = ("aten::max_unpool2d", "aten::max_unpool3d")


def _unpooled(a: Args) -> tuple[Tensor, Tensor]:
    """Give input and result: (n - 1) stride - 2 padding + window, unless a size is named."""
    x, rank = a.tensor("input"), rank_of(a)
    if len(x.shape) < rank:
        raise Unknown("arguments do not fit the op")
    asked = a.value("output_size")
    if isinstance(asked, tuple) and len(asked) >= rank:
        sizes = [item for item in asked[-rank:] if isinstance(item, int)]
    else:
        kernel = a.integers("kernel_size", rank, 1)
        stride = kernel if a.value("stride", ()) == () else a.integers("stride", rank, 1)
        padding = a.integers("padding", rank, 0)
        every = zip(x.shape[-rank:], kernel, stride, padding, strict=True)
        sizes = [(n - 1) * s - 2 * p + k for n, k, s, p in every]
    return x, fresh((*x.shape[:-rank], *sizes), x.dtype)


# 96 values of 2 bytes and indices of 8 read, 384 of 2 written
@op(
    *_NAMES,
    signature=(
        "Tensor input, Tensor indices, int[] kernel_size, int[] stride, int[] padding,"
        "int[] output_size"
    ),
    example=Call("torch.nn.functional", "max_unpool2d", (_SMALL, _PLACES, 2)),
    flops=0,
    bytes=1728,
)
@op(
    *_ATEN,
    signature="Tensor input, Tensor indices, int[] output_size",
    example=Call("aten", "max_unpool2d", (_SMALL, _PLACES, (8, 8))),
    flops=0,
    bytes=1728,
)
def unpool(a: Args) -> Work:
    """Zeros, and each value in its place."""
    x, out = _unpooled(a)
    return Work(0, (x, a.tensor("indices")), (out,))


# 96 picked from the gradient and their indices read, 96 written
@op(*_NAMES, direction=BPROP, flops=0, bytes=1152)
@op(*_ATEN, direction=BPROP, flops=0, bytes=1152)
def unpool_backward(a: Args) -> Work:
    """The incoming gradient where the values were put."""
    x = a.tensor("input")
    return Work(0, (like(x), a.tensor("indices")), (like(x),))


# 96 windows of 4; 384 of 2 bytes and 2 * 3 * 2 random numbers read, 96 of 2 bytes and indices of 8
# written
@op(
    *("aten::fractional_max_pool2d", "aten::fractional_max_pool3d"),
    signature="Tensor input, int[] kernel_size, int[] output_size, Tensor samples",
    example=Call(
        "aten",
        "fractional_max_pool2d",
        (_IMAGE, (2, 2), (4, 4), Tensor((2, 3, 2), "float16")),
    ),
    flops=384,
    bytes=1752,
)
def fractional_max_pool(a: Args) -> Work:
    """Windows of one size at drawn places."""
    x, rank = a.tensor("input"), rank_of(a)
    kernel = a.integers("kernel_size", rank, 1)
    out = fresh((*x.shape[:-rank], *a.integers("output_size", rank, 0)), x.dtype)
    flops = math.prod(kernel) * out.numel
    return Work(max(0, flops), (x, a.tensor("samples")), (out, fresh(out.shape, "int64")))
