"""Convolutions as one library's entry point is called; the formulas are those of `conv`."""

from __future__ import annotations

import math

from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import multiply_adds
from pyprof.ops.torch.nn.conv import backward_work, conv, convolution_backward, geometry
from pyprof.ops.work import Args, Work, like

FAMILY = "conv"

_X = f16(2, 4, 8, 8)
_W = f16(6, 4, 3, 3)


@op(
    "aten::cudnn_convolution",
    signature=(
        "Tensor input, Tensor weight, int[] padding, int[] stride, int[] dilation, int groups"
    ),
    example=Example((_X, _W, (1, 1), (1, 1), (1, 1), 1, False, False), flops=55296, bytes=2992),
    batch=("input",),
)
@op(
    *("aten::mkldnn_convolution", "aten::miopen_convolution", "aten::miopen_depthwise_convolution"),
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation,"
        "int groups"
    ),
    example=Example((_X, _W, None, (1, 1), (1, 1), (1, 1), 1), flops=55296, bytes=2992),
    batch=("input",),
)
@op(
    *("aten::_slow_conv2d_forward", "aten::conv_depthwise3d", "aten::_conv_depthwise2d"),
    *("aten::slow_conv3d_forward", "aten::thnn_conv2d", "aten::slow_conv_dilated2d"),
    *("aten::_conv_depthwise2d_forward", "aten::slow_conv3d", "aten::slow_conv_dilated3d"),
    signature=(
        "Tensor input, Tensor weight, any kernel_size, Tensor? bias, int[] stride, int[] padding,"
        "int[] dilation"
    ),
    example=Example((_X, _W, (3, 3), None, (1, 1), (1, 1)), flops=55296, bytes=2992),
    batch=("input",),
)
@op(
    "aten::cudnn_convolution_relu",
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] stride, any padding, int[] dilation,"
        "int groups"
    ),
    example=Example((_X, _W, None, (1, 1), (1, 1), (1, 1), 1), flops=55296, bytes=2992),
    batch=("input",),
)
# a convolution; its 2992 bytes, and z of the result's 768 elements of 2
@op(
    "aten::cudnn_convolution_add_relu",
    signature=(
        "Tensor input, Tensor weight, Tensor z, Number alpha, Tensor? bias, int[] stride,"
        "int[] padding, int[] dilation, int groups"
    ),
    example=Example(
        (_X, _W, f16(2, 6, 8, 8), 1.0, None, (1, 1), (1, 1), (1, 1), 1), flops=55296, bytes=4528
    ),
)
@op(
    "aten::cudnn_convolution_transpose",
    signature=(
        "Tensor input, Tensor weight, int[] padding, int[] output_padding, int[] stride,"
        "int[] dilation, int groups"
    ),
    # as conv_transpose2d above
    example=Example(
        (_X, f16(4, 6, 3, 3), (0, 0), (0, 0), (1, 1), (1, 1), 1), flops=55296, bytes=3856
    ),
    batch=("input",),
)
@op(
    *("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d"),
    signature=(
        "Tensor input, Tensor weight, any kernel_size, Tensor? bias, int[] stride, int[] padding,"
        "int[] output_padding, int[] dilation"
    ),
    example=Example(
        (_X, f16(4, 6, 3, 3), (3, 3), None, (1, 1), (0, 0), (0, 0), (1, 1)), flops=55296, bytes=3856
    ),
    batch=("input",),
)
def vendor_conv(a: Args) -> Work:
    """A convolution as one library's entry point is called; what else it adds is not counted."""
    return conv(a)


# both gradients, as conv2d's backward: 2 * 55296; 2992 elements of 2 bytes
@op(
    "aten::cudnn_convolution_backward",
    signature=(
        "Tensor input, Tensor grad_output, Tensor weight, int[] padding, int[] stride,"
        "int[] dilation, int groups, any benchmark, any deterministic, any tf32, any output_mask"
    ),
    example=Example((_X, f16(2, 6, 8, 8), _W, (1, 1), (1, 1), (1, 1), 1), flops=110592, bytes=5984),
    batch=("input", "grad_output"),
)
def conv_both(a: Args) -> Work:
    """Both gradients, as torch before 1.11 called cuDNN; the two below are called inside it."""
    mask = a.values.get("output_mask")
    dgrad = a.gemm_kernels != 1 if not isinstance(mask, tuple) else bool(mask and mask[0])
    return backward_work(geometry(a), dgrad=dgrad, wgrad=True, bias=False)


# One gradient: go 768 + w 216 + gx 512 = 1496 * 2 = 2992
@op(
    "aten::cudnn_convolution_backward_input",
    signature="int[] self_size, Tensor grad_output, Tensor weight",
    example=Example(((2, 4, 8, 8), f16(2, 6, 8, 8), _W), flops=55296, bytes=2992),
    result=("aten::cudnn_convolution_backward", "input"),
)
def conv_dgrad(a: Args) -> Work:
    """The input's gradient alone, as torch before 1.11 called cuDNN."""
    go, w = a.tensor("grad_output"), a.tensor("weight")
    size = _result(a, "self_size")
    if size is None:
        window = math.prod(go.shape[2:]) * (go.shape[0] if go.shape else 0)
        flops = multiply_adds(go.dtype) * w.numel * window
        return Work(flops, (go, w), extra_bytes=None, why="self_size not recorded")
    args = a.replaced(input=like(go, size), grad_output=go, weight=w)
    return backward_work(geometry(args), dgrad=True, wgrad=False, bias=False)


def _result(a: Args, name: str) -> tuple[int, ...] | None:
    """Return the shape of the gradient: the argument of this name, else what the caller knows."""
    size = a.value(name) if a.known(name) else None
    if not isinstance(size, tuple):
        return a.output
    return tuple(item for item in size if isinstance(item, int))


# The other gradient: go 768 + x 512 + gw 216 = 1496 * 2 = 2992
@op(
    "aten::cudnn_convolution_backward_weight",
    signature="int[] weight_size, Tensor grad_output, Tensor input",
    example=Example(((6, 4, 3, 3), f16(2, 6, 8, 8), _X), flops=55296, bytes=2992),
    result=("aten::cudnn_convolution_backward", "weight"),
)
def conv_wgrad(a: Args) -> Work:
    """The filter's gradient alone, as torch before 1.11 called cuDNN."""
    size = _result(a, "weight_size")
    if size is None:
        raise Unknown("weight_size not recorded")
    w = like(a.tensor("grad_output"), size)
    return backward_work(geometry(a.replaced(weight=w)), dgrad=False, wgrad=True, bias=False)


# as convolution_backward with all three gradients
@op(
    "aten::_slow_conv2d_backward",
    signature=(
        "Tensor grad_output, Tensor input, Tensor weight, any kernel_size, int[] stride,"
        "int[] padding, any output_mask"
    ),
    example=Example(
        (f16(2, 6, 8, 8), _X, _W, (3, 3), (1, 1), (1, 1), (True, True, True)),
        flops=110592,
        bytes=7532,
    ),
    batch=("grad_output", "input"),
)
def slow_conv_backward(a: Args) -> Work:
    """The CPU's plain form, neither dilated nor transposed."""
    return convolution_backward(a.replaced(transposed=False))
