"""Windows of an image as columns, and columns added up to an image again.

Bytes: read once, written once. Copying is not counted; where windows overlap, each element that is
added up counts as an addition.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import backward_of, op
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require

FAMILY = "copy"

_IMAGE = f16(2, 3, 4, 4)
_WINDOW = "int[] kernel_size, int[] dilation, int[] padding, int[] stride"


def _columns(a: Args) -> tuple[Tensor, Tensor]:
    x = a.tensor("input")
    kernel, dilation = a.integers("kernel_size", 2, 1), a.integers("dilation", 2, 1)
    padding, stride = a.integers("padding", 2, 0), a.integers("stride", 2, 1)
    inner = x.shape[-2:]
    require(has_rank(x, 3, or_more=True) and min(stride) >= 1)  # channel, height, width
    counts = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, d, p, s in zip(inner, kernel, dilation, padding, stride, strict=True)
    ]
    shape = (*x.shape[:-3], x.shape[-3] * math.prod(kernel), math.prod(counts))
    return x, fresh(shape, x.dtype)


def _image(a: Args) -> tuple[Tensor, Tensor]:
    x = a.tensor("input")
    size, kernel = a.integers("output_size", 2, 0), a.integers("kernel_size", 2, 1)
    require(has_rank(x, 2, or_more=True) and min(kernel) >= 1)  # values of a window, windows
    channels = x.shape[-2] // math.prod(kernel)
    return x, fresh((*x.shape[:-2], channels, *size), x.dtype)


# 2 samples, 3 * 2 * 2 values a window, 3 * 3 windows: 96 read, 216 written of 2 bytes
@op(
    *("torch.nn.functional.unfold", "aten::im2col"),
    signature=f"Tensor input, {_WINDOW}",
    example=Example((_IMAGE, 2), flops=0, bytes=624),
)
def unfold(a: Args) -> Work:
    """Every window is copied."""
    x, out = _columns(a)
    return Work(0, (x,), (out,))


# 216 additions; 216 read, 96 written of 2 bytes
@backward_of(unfold, flops=216, bytes=624)
def unfold_backward(a: Args) -> Work:
    """The windows' gradients are added up."""
    x, go = _columns(a)
    return Work(go.numel, (go,), (like(x),))


@op(
    *("torch.nn.functional.fold", "aten::col2im"),
    signature=f"Tensor input, int[] output_size, {_WINDOW}",
    # as unfold's backward
    example=Example((f16(2, 12, 9), (4, 4), 2), flops=216, bytes=624),
)
def fold(a: Args) -> Work:
    """Windows are added up where they overlap."""
    x, out = _image(a)
    return Work(x.numel, (x,), (out,))


# as unfold
@backward_of(fold, flops=0, bytes=624)
def fold_backward(a: Args) -> Work:
    """Every window of the incoming gradient is copied."""
    x, go = _image(a)
    return Work(0, (go,), (like(x),))
