"""Convolutions, transposed ones, and their backward passes: dgrad, wgrad, bias.

2 N K P Q C/g R S operations, as torch.utils.flop_counter counts: positions that lie in the
padding are counted, a bias is not. For a transposed convolution the roles of input and output
swap. Entry points of one library have the same formulas. Bytes: input, filter and bias read once,
the output written once; dgrad and wgrad are two separate products that each read what they need.
"""

import math
from dataclasses import dataclass

from pyprof.marker import Tensor
from pyprof.ops.examples import NN, Example, f16
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import multiply_adds
from pyprof.ops.work import Args, Work, like, require

FAMILY = "conv"

_X = f16(2, 4, 8, 8)
_W = f16(6, 4, 3, 3)


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of one convolution. `out` is what it makes; `window` the positions of the filter."""

    x: Tensor
    w: Tensor
    out: Tensor
    window: tuple[int, ...]
    params: dict[str, object]

    @property
    def flops(self) -> int:
        """Count: every filter element meets every position of the window in every sample."""
        batch = self.x.shape[0] if len(self.x.shape) == len(self.w.shape) else 1
        each = multiply_adds(self.x.dtype) * self.w.numel
        return each * batch * math.prod(self.window)


def geometry(a: Args) -> Geometry:
    """Read a convolution's arguments. Raises Unknown if its output is unknown."""
    x, w, known = a.tensor("input"), a.tensor("weight"), _known_output(a)
    rank = len(w.shape) - 2
    require(rank >= 1 and len(x.shape) in (rank + 1, rank + 2))
    lead, channels, inner = x.shape[: -rank - 1], x.shape[-rank - 1], x.shape[-rank:]
    transposed = _transposed(a, x, w)
    if transposed:
        groups = a.integer("groups", 1)
        require(channels == w.shape[0])
    else:
        groups = channels // w.shape[1] if w.shape[1] else 0
        require(groups * w.shape[1] == channels and groups > 0)
    if known is not None:
        require(len(known) == len(x.shape) and known[: -rank - 1] == lead)
        outer = known[-rank:]
    else:
        outer = _output(a, inner, w.shape[2:], transposed=transposed)
    out = like(x, (*lead, w.shape[1] * groups if transposed else w.shape[0], *outer))
    window = inner if transposed else outer
    return Geometry(x, w, out, window, _params(a, x, w, out, groups))


def _known_output(a: Args) -> tuple[int, ...] | None:
    grad = a.optional("grad_output")
    return a.output if grad is None else grad.shape


def _transposed(a: Args, x: Tensor, w: Tensor) -> bool:
    """Whether it is transposed, by its name, else its argument, else its output's shape."""
    if "transpose" in a.op:
        return True
    out = _known_output(a)
    if a.known("transposed") or out is None:
        return a.flag("transposed", default=False)
    rank = len(w.shape) - 2
    require(len(out) == len(x.shape))
    regular = out[-rank - 1] == w.shape[0]
    swapped = x.shape[-rank - 1] == w.shape[0]
    if regular and swapped and out[-1] > x.shape[-1]:
        raise Unknown("transposed not recorded")
    return swapped and not regular


def _output(
    a: Args, inner: tuple[int, ...], kernel: tuple[int, ...], *, transposed: bool
) -> tuple[int, ...]:
    rank = len(kernel)
    stride = a.integers("stride", rank, 1)
    dilation = a.integers("dilation", rank, 1)
    reach = [d * (r - 1) for d, r in zip(dilation, kernel, strict=True)]
    padding = a.value("padding", 0)
    if padding == "same":
        return inner
    around = (0,) * rank if padding == "valid" else a.integers("padding", rank, 0)
    if transposed:
        extra = a.integers("output_padding", rank, 0)
        return tuple(
            (size - 1) * s - 2 * p + r + e + 1
            for size, s, p, r, e in zip(inner, stride, around, reach, extra, strict=True)
        )
    sizes = tuple(
        (size + 2 * p - r - 1) // s + 1
        for size, s, p, r in zip(inner, stride, around, reach, strict=True)
    )
    require(min(sizes) >= 0)
    return sizes


def _params(a: Args, x: Tensor, w: Tensor, out: Tensor, groups: int) -> dict[str, object]:
    rank = len(w.shape) - 2
    names = {1: ("W", "Q", "S"), 2: ("HW", "PQ", "RS"), 3: ("DHW", "OPQ", "TRS")}.get(rank)
    params: dict[str, object] = {"N": x.shape[0] if len(x.shape) == rank + 2 else 1}
    params |= {"C": x.shape[-rank - 1], "K": out.shape[-rank - 1]}
    if names is not None:
        for letters, shape in zip(names, (x.shape, out.shape, w.shape), strict=True):
            params |= dict(zip(letters, shape[-rank:], strict=True))
    for name in ("padding", "stride", "dilation"):
        if isinstance(value := a.values.get(name), (int, str, tuple)):
            params[name] = value
    return params | {"g": groups, "type": x.dtype}


def backward_work(g: Geometry, *, dgrad: bool, wgrad: bool, bias: bool) -> Work:
    """Return the work of the requested gradients."""
    work = Work(0, (), (), g.params)
    if dgrad:
        work += Work(g.flops, (g.out, g.w), (like(g.x),))
    if wgrad:
        work += Work(g.flops, (g.out, g.x), (like(g.w),))
    if bias:
        channels = g.out.shape[-(len(g.w.shape) - 2) - 1]
        summed = like(g.w, (channels,))
        work += Work(0, (g.out,), (summed,), added=(g.out, summed))
    return work


# Same padding: out 2,6,8,8. 2 * (6*4*3*3) * 2 * 8*8 = 55296 operations;
# 512 + 216 + 768 = 1496 elements of 2 bytes = 2992
@op(
    *("conv2d", "conv1d", "conv3d", "aten::cudnn_convolution_relu"),
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] stride, any padding, int[] dilation,"
        "int groups"
    ),
    example=Example((_X, _W, None, (1, 1), (1, 1), (1, 1), 1), flops=55296, bytes=2992, mod=NN),
)
# in 2,4,8,8, filter 4,6,3,3: 2 * 216 * 2 * 64 = 55296; out (8-1)*1 + 2 + 1 = 10: 2*6*10*10 = 1200;
# 512 + 216 + 1200 = 1928 elements of 2 bytes = 3856
@op(
    *("conv_transpose2d", "conv_transpose1d", "conv_transpose3d"),
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] stride, any padding,"
        "int[] output_padding, int groups, int[] dilation"
    ),
    example=Example((_X, f16(4, 6, 3, 3)), flops=55296, bytes=3856, mod=NN),
)
@op(
    *("convolution", "_convolution", "convolution_overrideable"),
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation,"
        "bool transposed, int[] output_padding, int groups"
    ),
    # as conv2d above
    example=Example(
        (_X, _W, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1),
        flops=55296,
        bytes=2992,
        mod="aten",
    ),
)
# one library's entry points; what else these add is not counted
@op(
    "aten::cudnn_convolution",
    signature=(
        "Tensor input, Tensor weight, int[] padding, int[] stride, int[] dilation, int groups"
    ),
    example=Example((_X, _W, (1, 1), (1, 1), (1, 1), 1, False, False), flops=55296, bytes=2992),
)
@op(
    *("aten::mkldnn_convolution", "aten::miopen_convolution", "aten::miopen_depthwise_convolution"),
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, int[] padding, int[] stride, int[] dilation,"
        "int groups"
    ),
    example=Example((_X, _W, None, (1, 1), (1, 1), (1, 1), 1), flops=55296, bytes=2992),
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
)
def conv(a: Args) -> Work:
    """A sum over C/g R S products for each of N K P Q outputs; of a transposed one, of inputs."""
    g = geometry(a)
    bias = a.present("bias")
    reads = (g.x, g.w, *bias, *a.present("z"))
    return Work(g.flops, reads, (g.out,), g.params, added=(*bias, g.out) if bias else ())


# dgrad and wgrad: 2 * 55296; go 768 + w 216 + gx 512, go 768 + x 512 + gw 216 = 2992 * 2 bytes
@op(*("conv1d", "conv2d", "conv3d"), direction=BPROP, flops=110592, bytes=5984)
@op(
    *("convolution", "_convolution", "convolution_overrideable"),
    direction=BPROP,
    flops=110592,
    bytes=5984,
)
# 2 * 55296; go 1200 + w 216 + gx 512, go 1200 + x 512 + gw 216 = 3856 * 2 bytes
@op(
    *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
    direction=BPROP,
    flops=110592,
    bytes=7712,
)
def conv_backward(a: Args) -> Work:
    """Input's, filter's and bias's gradients; the filter's alone if one kernel was launched."""
    dgrad = a.gemm_kernels != 1
    return backward_work(geometry(a), dgrad=dgrad, wgrad=True, bias=a.given("bias"))


# output_mask asks for all three: 2 * 55296 operations; 2992 elements as above, and the bias's
# sum: go 768 + 6 = 3766 elements of 2 bytes = 7532
@op(
    "aten::convolution_backward",
    signature=(
        "Tensor grad_output, Tensor input, Tensor weight, any bias_sizes, int[] stride,"
        "int[] padding, int[] dilation, any transposed, int[] output_padding, int groups,"
        "any output_mask"
    ),
    example=Example(
        (
            *(f16(2, 6, 8, 8), _X, _W, (6,), (1, 1), (1, 1), (1, 1), False, (0, 0), 1),
            (True, True, True),
        ),
        flops=110592,
        bytes=7532,
    ),
)
# the CPU's plain form, neither dilated nor transposed
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
)
def convolution_backward(a: Args) -> Work:
    """The gradients that the mask asks for; if unknown, the bias's if its size is recorded."""
    mask = a.values.get("output_mask")
    if not isinstance(mask, tuple) or len(mask) != 3:  # noqa: PLR2004 - input, filter, bias
        mask = (a.gemm_kernels != 1, True, isinstance(a.values.get("bias_sizes"), tuple))
    return backward_work(geometry(a), dgrad=bool(mask[0]), wgrad=bool(mask[1]), bias=bool(mask[2]))


# both gradients, as conv2d's backward: 2 * 55296; 2992 elements of 2 bytes
@op(
    "aten::cudnn_convolution_backward",
    signature=(
        "Tensor input, Tensor grad_output, Tensor weight, int[] padding, int[] stride,"
        "int[] dilation, int groups, any benchmark, any deterministic, any tf32, any output_mask"
    ),
    example=Example((_X, f16(2, 6, 8, 8), _W, (1, 1), (1, 1), (1, 1), 1), flops=110592, bytes=5984),
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
        return Work(flops, (go, w), why="self_size not recorded")
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
