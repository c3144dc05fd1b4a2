"""torchvision's deformable convolution, forward and backward.

Each filter position reads the image at an offset of its own, between pixels: a sample of 4
neighbours, 7 operations, times the mask. Samples are written as columns, and multiplied by the
filter like those of any convolution. For the gradients the columns' gradient is multiplied by the
filter, and then each element
* is weighted twice and added at 4 pixels of the image: 12;
* meets for both coordinates the slope between 4 neighbours (5), is multiplied twice and added: 16;
* with a mask is multiplied by the sample and added: 9;
and the samples are taken again: 8 (torchvision/csrc/ops/cuda/deform_conv2d_kernel.cu).

Bytes: each tensor once; columns are written and read, their gradient is read twice.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import op
from pyprof.ops.torch.nn.conv import Geometry, geometry
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require, size

FAMILY = "conv"

_X, _W, _OUT = f16(2, 4, 8, 8), f16(6, 4, 3, 3), f16(2, 6, 8, 8)
_OFFSET, _MASK, _BIAS = f16(2, 18, 8, 8), f16(2, 9, 8, 8), f16(6)
_TENSORS = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_NUMBERS = (
    "int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w,"
    "int groups, int offset_groups, bool use_mask"
)
_SAMPLE = 8
_SCATTER, _OFFSET_GRADIENT, _MASK_GRADIENT = 12, 16, 9


def _geometry(a: Args) -> Geometry:
    """Read the shapes; each pair of numbers is two arguments."""
    pairs = {"stride": ("stride", 1), "padding": ("pad", 0), "dilation": ("dilation", 1)}
    numbers = {
        name: (a.integer(f"{short}_h", default), a.integer(f"{short}_w", default))
        for name, (short, default) in pairs.items()
    }
    require(has_rank(a.tensor("input"), 4) and min(numbers["stride"]) >= 1)
    return geometry(a.replaced(**numbers))


def _columns(g: Geometry) -> Tensor:
    """Return the samples: one for each filter position, channel and position of the window."""
    kernel = math.prod(g.w.shape[2:])
    return fresh((size(g.x, 1) * kernel, size(g.x, 0) * math.prod(g.window)), g.x.dtype)


def _operands(a: Args, g: Geometry) -> tuple[Tensor, ...]:
    """Return what both passes read: image, filter, offsets and, if it is used, the mask."""
    masks = (a.tensor("mask"),) if a.flag("use_mask", default=True) else ()
    return (g.x, g.w, a.tensor("offset"), *masks)


# a convolution of 55296; columns of 4 * 9 * 2 * 64 = 4608 elements: 8 each. x 512, w 216,
# offsets 2304, mask 1152, bias 6, out 768, columns 2 * 4608 elements of 2 bytes
@op(
    "torchvision::deform_conv2d",
    signature=f"{_TENSORS}, {_NUMBERS}",
    example=Example(
        (_X, _W, _OFFSET, _MASK, _BIAS, 1, 1, 1, 1, 1, 1, 1, 1, True), flops=92160, bytes=28348
    ),
)
def deform_conv2d(a: Args) -> Work:
    """A sample for each element of the columns, then a product with the filter."""
    g = _geometry(a)
    columns, bias = _columns(g), a.tensor("bias")
    flops = g.flops + _SAMPLE * columns.numel
    return Work(flops, (*_operands(a, g), bias, columns), (g.out, columns), g.params)


# 2 * 55296 and 4608 * (12 + 16 + 9 + 8). go 768, x 512, w 216, offsets 2304, mask 1152 read, the
# last four and the bias's 6 written; columns 5 * 4608 elements of 2 bytes
@op(
    "torchvision::_deform_conv2d_backward",
    signature=f"Tensor grad_output, {_TENSORS}, {_NUMBERS}",
    example=Example(
        (_OUT, _X, _W, _OFFSET, _MASK, _BIAS, 1, 1, 1, 1, 1, 1, 1, 1, True),
        flops=317952,
        bytes=64364,
    ),
)
def deform_conv2d_backward(a: Args) -> Work:
    """The gradients of image, offsets and mask from the columns' gradient, and the filter's."""
    g, masked = _geometry(a), a.flag("use_mask", default=True)
    operands, columns = _operands(a, g), _columns(g)
    each = _SCATTER + _OFFSET_GRADIENT + masked * _MASK_GRADIENT + _SAMPLE
    gradients = (*map(like, operands), like(a.tensor("bias")))
    reads = (g.out, *operands, *(columns,) * 3)
    flops = 2 * g.flops + each * columns.numel
    return Work(flops, reads, (*gradients, *(columns,) * 2), g.params)
