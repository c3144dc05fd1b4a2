"""Pooling and its inverse, forward and backward.

An output costs one operation for each element of its window: a comparison, or an addition and at
the end the division. Bytes: the input read once, the output (and indices, if they are kept) written
once. Positions in the padding are counted. Unpooling puts each value at its index, among zeros: no
arithmetic.
"""

import math

from pyprof.marker import Tensor, Value
from pyprof.ops.examples import NN, Example, f16, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like, require

FAMILY = "pool"

_X = f16(2, 3, 8, 8)


def rank_of(a: Args) -> int:
    """Return how many dimensions the op pools, according to its name."""
    return next((int(digit) for digit in a.op if digit in "123"), 2)


def _window(a: Args, x: Tensor) -> tuple[int, tuple[int, ...]]:
    """Return the elements of a window and the output's shape."""
    rank = rank_of(a)
    kernel = a.integers("kernel_size", rank, 0)
    require(len(x.shape) >= rank and min(kernel) >= 1)
    stride = kernel if a.value("stride", ()) == () else a.integers("stride", rank, 1)
    padding, dilation = a.integers("padding", rank, 0), a.integers("dilation", rank, 1)
    up = a.flag("ceil_mode", default=False)
    inner = x.shape[-rank:]
    sizes = [
        _positions(size, k, s, p, d, up=up)
        for size, k, s, p, d in zip(inner, kernel, stride, padding, dilation, strict=True)
    ]
    return math.prod(kernel), (*x.shape[:-rank], *sizes)


def _positions(
    size: int, kernel: int, stride: int, padding: int, dilation: int, *, up: bool
) -> int:
    require(stride >= 1)
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = -(-room // stride) if up else room // stride
    if up and count * stride >= size + padding:
        count -= 1  # the last window would start in the padding
    return count + 1


_MAX_NAMES = tuple(
    f"max_pool{rank}d{suffix}" for rank in (1, 2, 3) for suffix in ("", "_with_indices")
)


# 2 * 3 * 4 * 4 = 96 windows of 4; 384 read, 96 written of 2 bytes, 96 indices of 8
@op(
    *_MAX_NAMES,
    signature=(
        "Tensor input, int[] kernel_size, int[] stride, int[] padding, int[] dilation,"
        "bool ceil_mode, bool return_indices"
    ),
    example=Example(
        (_X, (2, 2), (2, 2), (0, 0), (1, 1), False),
        flops=384,
        bytes=1728,
        op="max_pool2d_with_indices",
        mod="aten",
    ),
)
# 96 windows of 4; 384 read, 96 written of 2 bytes
@op(
    *("avg_pool2d", "avg_pool1d", "avg_pool3d"),
    signature=(
        "Tensor input, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode,"
        "bool count_include_pad, int divisor_override"
    ),
    example=Example((_X, 2), flops=384, bytes=960, mod=NN),
)
def pool(a: Args) -> Work:
    """Every window is compared or added up."""
    x = a.tensor("input")
    window, shape = _window(a, x)
    out = like(x, shape)
    keeps_indices = a.op.endswith("with_indices") or a.values.get("return_indices") is True
    return Work(window * out.numel, (x,), (out, *(fresh(shape, "int64"),) * keeps_indices))


def _to_maxima(go: Tensor, x: Tensor) -> Work:
    return Work(go.numel, (go, fresh(go.shape, "int64")), (like(x),))


# 96 gradients go to the maxima; 96 of 2 bytes and indices of 8 read, 384 of 2 written
@op(*_MAX_NAMES, direction=BPROP, flops=96, bytes=1728)
@op(
    *("aten::adaptive_max_pool2d_backward", "aten::adaptive_max_pool3d_backward"),
    *("aten::fractional_max_pool2d_backward", "aten::fractional_max_pool3d_backward"),
    signature="Tensor grad_output, Tensor input",
    # as above
    example=Example((f16(2, 3, 4, 4), _X, None), flops=96, bytes=1728),
)
@op(
    *("aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward"),
    signature="Tensor grad_output, Tensor input, int[] kernel_size",
    # as above
    example=Example(
        (f16(2, 3, 4, 4), _X, (2, 2), (2, 2), (0, 0), (1, 1), False, None), flops=96, bytes=1728
    ),
)
def max_pool_backward(a: Args) -> Work:
    """Each incoming gradient is added at its maximum's place."""
    x, go = a.tensor("input"), a.optional("grad_output")
    return _to_maxima(like(x, _window(a, x)[1]) if go is None else go, x)


# 96 windows of 4 get their share; 96 read, 384 written of 2 bytes
@op(*("avg_pool1d", "avg_pool2d", "avg_pool3d"), direction=BPROP, flops=384, bytes=960)
@op(
    *("aten::avg_pool2d_backward", "aten::avg_pool3d_backward"),
    signature="Tensor grad_output, Tensor input, int[] kernel_size",
    # as above
    example=Example((f16(2, 3, 4, 4), _X, (2, 2), (2, 2)), flops=384, bytes=960),
)
def avg_pool_backward(a: Args) -> Work:
    """Each incoming gradient is spread over its window."""
    x, go = a.tensor("input"), a.optional("grad_output")
    if go is None:
        window, shape = _window(a, x)
        go = like(x, shape)
    elif a.known("kernel_size"):
        window = math.prod(a.integers("kernel_size", rank_of(a), 1))
    else:
        return Work(None, (go,), (like(x),), no_flops="kernel_size not recorded")
    return Work(window * go.numel, (go,), (like(x),))


# --- adaptive pooling ---------------------------------------------------------------------------
def _adaptive(a: Args, x: Tensor) -> tuple[int, tuple[int, ...]]:
    """Return the sum of all windows and the output's shape: i n / m to (i + 1) n / m."""
    rank = rank_of(a)
    asked = a.value("output_size")
    wanted: tuple[Value, ...] = asked if isinstance(asked, tuple) else (asked,)
    wanted = wanted * rank if len(wanted) == 1 else wanted
    inner = x.shape[-rank:]
    require(len(inner) == rank and len(wanted) == rank)
    sizes = [old if new is None else new for old, new in zip(inner, wanted, strict=True)]
    outer = [new for new in sizes if isinstance(new, int) and new >= 0]
    if len(outer) != rank:
        raise Unknown("output_size not recorded")
    covered = [
        sum(-(-(i + 1) * n // m) - i * n // m for i in range(m))
        for n, m in zip(inner, outer, strict=True)
    ]
    return math.prod(x.shape[:-rank]) * math.prod(covered), (*x.shape[:-rank], *outer)


_ADAPTIVE = tuple(
    name.format(rank)
    for name in (
        *("adaptive_avg_pool{}d", "_adaptive_avg_pool{}d"),
        *("adaptive_max_pool{}d", "adaptive_max_pool{}d_with_indices"),
    )
    for rank in (1, 2, 3)
)


# one window of 64 for each of 6 channels; 384 read, 6 written of 2 bytes
@op(
    *_ADAPTIVE,
    signature="Tensor input, any output_size, bool return_indices",
    example=Example((_X, 1), flops=384, bytes=780, op="adaptive_avg_pool2d", mod=NN),
)
def adaptive_pool(a: Args) -> Work:
    """Windows as large as the sizes ask for."""
    x = a.tensor("input")
    flops, shape = _adaptive(a, x)
    out = like(x, shape)
    indices = (fresh(shape, "int64"),) if "max" in a.op else ()
    return Work(flops, (x,), (out, *indices))


# each of 384 elements gets its share of one of 6; 6 read, 384 written of 2 bytes
@backward_of(adaptive_pool, flops=384, bytes=780)
@op(
    *("aten::_adaptive_avg_pool2d_backward", "aten::_adaptive_avg_pool3d_backward"),
    "aten::adaptive_avg_pool3d_backward",
    signature="Tensor grad_output, Tensor input",
    # as above
    example=Example((f16(2, 3, 1, 1), _X), flops=384, bytes=780),
)
def adaptive_pool_backward(a: Args) -> Work:
    """The incoming gradients are spread over their windows, or put at their maxima."""
    x, go = a.tensor("input"), a.optional("grad_output")
    if go is not None:
        a = a.replaced(output_size=go.shape[-rank_of(a) :])
    flops, shape = _adaptive(a, x)
    go = like(x, shape) if go is None else go
    return _to_maxima(go, x) if "max" in a.op else Work(flops, (go,), (like(x),))


_SMALL, _INDICES = f16(2, 3, 4, 4), i64(2, 3, 4, 4)


# 96 values of 2 bytes and indices of 8 read, 384 of 2 written
@op(
    *(f"torch.nn.functional.max_unpool{rank}d" for rank in (1, 2, 3)),
    signature=(
        "Tensor input, Tensor indices, int[] kernel_size, int[] stride, int[] padding,"
        "int[] output_size"
    ),
    example=Example((_SMALL, _INDICES, 2), flops=0, bytes=1728, op="max_unpool2d"),
)
@op(
    *("aten::max_unpool2d", "aten::max_unpool3d"),
    signature="Tensor input, Tensor indices, int[] output_size",
    example=Example((_SMALL, _INDICES, (8, 8)), flops=0, bytes=1728),
)
def unpool(a: Args) -> Work:
    """Zeros, and each value in its place: (n - 1) stride - 2 padding + window, or a named size."""
    x, rank = a.tensor("input"), rank_of(a)
    require(len(x.shape) >= rank)
    asked = a.value("output_size")
    if isinstance(asked, tuple) and len(asked) >= rank:
        sizes = [item for item in asked[-rank:] if isinstance(item, int)]
    else:
        kernel = a.integers("kernel_size", rank, 1)
        stride = kernel if a.value("stride", ()) == () else a.integers("stride", rank, 1)
        padding = a.integers("padding", rank, 0)
        every = zip(x.shape[-rank:], kernel, stride, padding, strict=True)
        sizes = [(n - 1) * s - 2 * p + k for n, k, s, p in every]
    out = fresh((*x.shape[:-rank], *sizes), x.dtype)
    return Work(0, (x, a.tensor("indices")), (out,))


# 96 picked from the gradient and their indices read, 96 written
@backward_of(unpool, flops=0, bytes=1152)
def unpool_backward(a: Args) -> Work:
    """The incoming gradient where the values were put."""
    x = a.tensor("input")
    return Work(0, (like(x), a.tensor("indices")), (like(x),))


# 96 windows of 4; 384 of 2 bytes and 2 * 3 * 2 random numbers read, 96 of 2 bytes and indices of 8
# written
@op(
    *("aten::fractional_max_pool2d", "aten::fractional_max_pool3d"),
    signature="Tensor input, int[] kernel_size, int[] output_size, Tensor samples",
    example=Example((_X, (2, 2), (4, 4), f16(2, 3, 2)), flops=384, bytes=1752),
)
def fractional_max_pool(a: Args) -> Work:
    """Maxima of windows of one size at random positions."""
    x, rank = a.tensor("input"), rank_of(a)
    kernel = a.integers("kernel_size", rank, 1)
    out = fresh((*x.shape[:-rank], *a.integers("output_size", rank, 0)), x.dtype)
    flops = math.prod(kernel) * out.numel
    return Work(max(0, flops), (x, a.tensor("samples")), (out, fresh(out.shape, "int64")))
