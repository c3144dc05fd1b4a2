"""Group, instance and RMS norm, forward and backward; costs an element as in `normalization`."""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops.normalization import asked, norm, norm_backward, rows, wide
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "norm"

_IMAGE = Tensor((2, 4, 3, 3), "float16")
_CHANNELS = Tensor((4,), "float32")
_ROWS = Tensor((2, 3, 8), "float16")
_SCALE = Tensor((8,), "float16")

_RMS_FORWARD, _RMS_BACKWARD = 3, 7

# --- group and instance norm --------------------------------------------------------------------
_GROUP = "Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps"


# 72 * 8; 144 of 2 bytes = 288; scale and shift 8, statistics of 2 * 2 groups 8, of 4 bytes = 64
@op(
    "group_norm",
    signature=_GROUP,
    example=Call("torch.nn.functional", "group_norm", (_IMAGE, 2, _CHANNELS, _CHANNELS)),
    flops=576,
    bytes=352,
    batch=("input",),
)
def groupnorm(a: Args) -> Work:
    """Each group of channels of each sample has its own statistics."""
    x = a.tensor("input")
    return norm(a, x, size(x, 0) * a.integer("num_groups", 1))


# 72 * 10; 3 * 72 of 2 bytes = 432; saved 2 * 4, scale 4, two gradients 8, of 4 bytes = 80
@op("group_norm", direction=BPROP, flops=720, bytes=512, batch=("input",))
def groupnorm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift."""
    x = a.tensor("input")
    return norm_backward(a, x, like(x), size(x, 0) * a.integer("num_groups", 1))


@op(
    "aten::native_group_norm",
    signature=(
        "Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps"
    ),
    example=Call("aten", "native_group_norm", (_IMAGE, _CHANNELS, _CHANNELS, 2, 4, 9, 2, 1e-5)),
    flops=576,  # as group_norm
    bytes=352,
)
def native_groupnorm(a: Args) -> Work:
    """The same as ATen's own op."""
    x = a.tensor("input")
    return norm(a, x, size(x, 0) * a.integer("group", 1))


@op(
    "aten::native_group_norm_backward",
    signature=(
        "Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C,"
        "int HxW, int group, any output_mask"
    ),
    example=Call(
        "aten",
        "native_group_norm_backward",
        (_IMAGE, _IMAGE, *(Tensor((2, 2), "float32"),) * 2, _CHANNELS, 2, 4, 9, 2),
    ),
    flops=720,  # as group_norm's backward
    bytes=512,
)
def native_groupnorm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift."""
    x = a.tensor("input")
    with_bias = a.replaced(bias=a.optional("weight"))
    return norm_backward(with_bias, x, a.tensor("grad_output"), a.tensor("mean").numel)


# 72 * 6; 144 of 2 bytes, 2 * 4 * 2 statistics of 4 bytes
@op(
    "instance_norm",
    signature=(
        "Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias,"
        "bool use_input_stats"
    ),
    example=Call("torch.nn.functional", "instance_norm", (_IMAGE,)),
    flops=432,
    bytes=352,
    batch=("input",),
)
@op(
    "aten::instance_norm",
    signature=(
        "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,"
        "bool use_input_stats"
    ),
    example=Call("aten", "instance_norm", (_IMAGE, None, None, None, None, True)),
    flops=432,
    bytes=352,
    batch=("input",),
)
def instancenorm(a: Args) -> Work:
    """Each channel of each sample has its own statistics."""
    x = a.tensor("input")
    return norm(a, x, math.prod(x.shape[:2]))


# 72 * 10; 3 * 72 of 2 bytes, 2 * 8 statistics of 4 bytes
@op("instance_norm", direction=BPROP, flops=720, bytes=496, batch=("input",))
def instancenorm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift."""
    x = a.tensor("input")
    return norm_backward(a, x, like(x), math.prod(x.shape[:2]))


# --- RMS norm -----------------------------------------------------------------------------------
_RMS = "Tensor input, int[] normalized_shape, Tensor? weight, float eps"


# square 1, sum 1, scale by the root 1, weight 1: 48 * 4; 48 + 48 + 8 of 2 bytes = 208, one
# statistic for 6 rows of 4 bytes = 24
@op(
    *("rms_norm", "_fused_rms_norm"),
    signature=_RMS,
    example=Call("torch.nn.functional", "rms_norm", (_ROWS, (8,), _SCALE)),
    flops=192,
    bytes=232,
    batch=("input",),
)
def rmsnorm(a: Args) -> Work:
    """As layer norm without a mean and without a shift."""
    x = a.tensor("input")
    weight = a.present("weight")
    saved = fresh((rows(a, x),), wide(x.dtype))
    return Work((_RMS_FORWARD + len(weight)) * x.numel, (x, *weight), (like(x), saved))


# x-hat 1, go * weight 1, its product with x-hat and the sum 2, the rest 3: 48 * 7;
# go 48 + x 48 + weight 8 read, 48 + 8 written of 2 bytes = 320, saved 24
@op(*("rms_norm", "_fused_rms_norm"), direction=BPROP, flops=336, bytes=344, batch=("input",))
@op(
    "aten::_fused_rms_norm_backward",
    signature=(
        "Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight,"
        "any output_mask"
    ),
    example=Call(
        "aten",
        "_fused_rms_norm_backward",
        (_ROWS, _ROWS, (8,), Tensor((2, 3, 1), "float32"), _SCALE, (True, True)),
    ),
    flops=336,
    bytes=344,
)
def rmsnorm_backward(a: Args) -> Work:
    """The gradients of input and weight."""
    x = a.tensor("input")
    weight = a.present("weight")
    saved = fresh((rows(a, x),), wide(x.dtype))
    reads = (like(x), x, saved, *weight)
    return Work(_RMS_BACKWARD * x.numel, reads, asked(a, (x,), weight))
