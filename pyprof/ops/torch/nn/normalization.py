"""Batch, layer, group, instance and RMS norm, forward and backward.

An element costs: the mean 1, the variance 3 (subtract, square, add), the normalisation 2, scale and
shift 1 each. Existing statistics (batch norm in evaluation) save the first 4. Bytes: the input read
once and the output written once, scale, shift and statistics likewise; kernels that compute
statistics first read the input twice.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops.examples import NN, Example, f16, f32
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "norm"

_IMAGE = f16(2, 4, 3, 3)
_CHANNELS = f32(4)
_ROWS = f16(2, 3, 8)
_SCALE = f16(8)

_STATISTICS = 4
_NORMALISE = 2
# x-hat again 2, the sums of go and of go * x-hat 3, and (go - mean - x-hat * mean) * scale 5
_BACKWARD = 10


def wide(dtype: str | None) -> str | None:
    """Return the dtype of kept statistics: at least float32."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _forward(a: Args, x: Tensor, groups: int, *, statistics: bool = True) -> Work:
    """Return the forward work for x in `groups` groups with a mean and a deviation each."""
    affine = a.present("weight", "bias")
    each = _STATISTICS * statistics + _NORMALISE + len(affine)
    saved = (fresh((groups,), wide(x.dtype)),) * (2 * statistics)
    return Work(each * x.numel, (x, *affine), (like(x), *saved))


def asked(a: Args, *owners: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the gradients that `output_mask` asks for, with their owners; all if it is unknown."""
    mask = a.values.get("output_mask")
    if not isinstance(mask, tuple) or len(mask) != len(owners):
        mask = (True,) * len(owners)
    wanted = (tensors for tensors, asked_for in zip(owners, mask, strict=True) if asked_for)
    return tuple(like(tensor) for tensors in wanted for tensor in tensors)


# --- batch norm ---------------------------------------------------------------------------------
_FUNCTIONAL = (
    "Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias,"
    "bool training, float momentum, float eps"
)
_TORCH = (
    "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,"
    "bool training, float momentum, float eps"
)


# 72 elements * 8; 72 + 72 of 2 bytes, scale, shift and running statistics (read 4 * 4, written
# 2 * 4), saved mean and deviation 2 * 4, of 4 bytes: 288 + 64 + 32 + 32 = 416
@op(
    "torch.nn.functional.batch_norm",
    signature=_FUNCTIONAL,
    example=Example((_IMAGE, *(_CHANNELS,) * 4, True), flops=576, bytes=416),
)
@op(
    *("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
    *("_batch_norm_impl_index", "_native_batch_norm_legit", "_batch_norm_with_update"),
    signature=_TORCH,
    example=Example((_IMAGE, *(_CHANNELS,) * 4, True, 0.1, 1e-5, True), flops=576, bytes=416),
)
# 72 * 4, without statistics: 144 of 2 bytes, four vectors of 4 of 4
@op(
    *("_native_batch_norm_legit_no_training", "_batch_norm_no_update"),
    signature=_TORCH.replace("bool training, ", ""),
    example=Example((_IMAGE, *(_CHANNELS,) * 4, 0.1, 1e-5), flops=288, bytes=352, mod="aten"),
)
def batchnorm(a: Args) -> Work:
    """In training the statistics are computed and the running ones updated."""
    x = a.tensor("input")
    training = "training" not in a.values or a.flag("training", default=False)
    if a.op.startswith("_batch_norm_with"):
        training = True
    elif a.op in ("_native_batch_norm_legit_no_training", "_batch_norm_no_update"):
        training = False
    running = a.present("running_mean", "running_var")
    work = _forward(a, x, size(x, 1), statistics=training)
    updated = running if training else ()
    return Work(work.flops, (*work.reads, *running), (*work.writes, *updated))


# --- layer, group and instance norm -------------------------------------------------------------
def rows(a: Args, x: Tensor) -> int:
    """Count the groups that are normalised, from the normalised shape or the scale's."""
    shape = a.values.get("normalized_shape")
    weight = a.optional("weight")
    if isinstance(shape, int):
        row = shape
    elif isinstance(shape, tuple):
        row = math.prod(item for item in shape if isinstance(item, int))
    else:
        row = weight.numel if weight is not None else size(x, -1)
    return x.numel // row if row > 0 else 0


def _groups(a: Args, x: Tensor) -> int:
    """Count what has a mean and a deviation of its own: a channel in batch norm."""
    if "layer_norm" in a.op:
        return rows(a, x)
    if "group_norm" in a.op:
        return size(x, 0) * a.integer("num_groups", 1)
    return math.prod(x.shape[:2]) if "instance_norm" in a.op else size(x, 1)


# 48 elements * 8; 48 + 48, scale 8 and shift 8 of 2 bytes = 224; mean and deviation of 6 rows of
# 4 bytes = 48
@op(
    *("layer_norm", "native_layer_norm"),
    signature="Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
    example=Example((_ROWS, (8,), _SCALE, _SCALE, 1e-5), flops=384, bytes=272, mod=NN),
)
# 72 * 8; 144 of 2 bytes = 288; scale and shift 8, statistics of 2 * 2 groups 8, of 4 bytes = 64
@op(
    "group_norm",
    signature="Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps",
    example=Example((_IMAGE, 2, _CHANNELS, _CHANNELS), flops=576, bytes=352, mod=NN),
)
@op(
    "aten::native_group_norm",
    signature=(
        "Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int num_groups,"
        "float eps"
    ),
    # as group_norm
    example=Example((_IMAGE, _CHANNELS, _CHANNELS, 2, 4, 9, 2, 1e-5), flops=576, bytes=352),
)
# 72 * 6; 144 of 2 bytes, 2 * 4 * 2 statistics of 4 bytes
@op(
    "instance_norm",
    signature=(
        "Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight, Tensor? bias,"
        "bool use_input_stats"
    ),
    example=Example((_IMAGE,), flops=432, bytes=352, mod=NN),
)
@op(
    "aten::instance_norm",
    signature=(
        "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var,"
        "bool use_input_stats"
    ),
    example=Example((_IMAGE, None, None, None, None, True), flops=432, bytes=352),
)
def norm(a: Args) -> Work:
    """Each row, group of channels or channel of a sample is normalised by its own statistics."""
    x = a.tensor("input")
    return _forward(a, x, _groups(a, x))


# --- the backward of all of them ----------------------------------------------------------------
# 72 * 10; go 72 + x 72 read, 72 written of 2 bytes = 432; saved 2 * 4, scale 4 read, scale's and
# shift's gradients 2 * 4 written, of 4 bytes = 80
@op("torch.nn.functional.batch_norm", direction=BPROP, flops=720, bytes=512)
@op(
    *("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
    *("_batch_norm_impl_index", "_native_batch_norm_legit", "_batch_norm_with_update"),
    direction=BPROP,
    flops=720,
    bytes=512,
)
# As above: the gradients of scale and shift are as large as the scale
@op(
    *("aten::native_batch_norm_backward", "aten::batch_norm_backward"),
    signature=(
        "Tensor grad_output, Tensor input, Tensor? weight, Tensor? running_mean,"
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool training, float eps,"
        "any output_mask"
    ),
    example=Example((_IMAGE, _IMAGE, _CHANNELS), flops=720, bytes=512),
)
@op(
    *("aten::cudnn_batch_norm_backward", "aten::miopen_batch_norm_backward"),
    signature="Tensor input, Tensor grad_output, Tensor? weight",
    example=Example((_IMAGE, _IMAGE, _CHANNELS), flops=720, bytes=512),
)
# 48 * 10; go 48 + x 48 + scale 8 read, 48 + 8 + 8 written of 2 bytes = 336; saved 2 * 6 of 4 = 48
@op(*("layer_norm", "native_layer_norm"), direction=BPROP, flops=480, bytes=384)
@op(
    "aten::native_layer_norm_backward",
    signature=(
        "Tensor grad_output, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd,"
        "Tensor? weight, Tensor? bias, any output_mask"
    ),
    # as above
    example=Example(
        (_ROWS, _ROWS, (8,), *(f32(2, 3, 1),) * 2, _SCALE, _SCALE), flops=480, bytes=384
    ),
)
# 72 * 10; 3 * 72 of 2 bytes = 432; saved 2 * 4, scale 4, two gradients 8, of 4 bytes = 80
@op("group_norm", direction=BPROP, flops=720, bytes=512)
@op(
    "aten::native_group_norm_backward",
    signature=(
        "Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int N, int C,"
        "int HxW, int num_groups, any output_mask"
    ),
    # as group_norm's backward
    example=Example(
        (_IMAGE, _IMAGE, *(f32(2, 2),) * 2, _CHANNELS, 2, 4, 9, 2), flops=720, bytes=512
    ),
)
# 72 * 10; 3 * 72 of 2 bytes, 2 * 8 statistics of 4 bytes
@op("instance_norm", direction=BPROP, flops=720, bytes=496)
def norm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift; that is as large as the scale."""
    x = a.tensor("input")
    saved = (fresh((_groups(a, x),), wide(x.dtype)),) * 2
    weight = a.present("weight")
    bias = a.present("bias") if "bias" in a.values else weight
    written = asked(a, (x,), weight, bias)
    return Work(_BACKWARD * x.numel, (a.gradient(x), x, *saved, *weight), written)


# --- RMS norm -----------------------------------------------------------------------------------
_RMS_FORWARD, _RMS_BACKWARD = 3, 7


# square 1, sum 1, scale by the root 1, weight 1: 48 * 4; 48 + 48 + 8 of 2 bytes = 208, one
# statistic for 6 rows of 4 bytes = 24
@op(
    *("rms_norm", "_fused_rms_norm"),
    signature="Tensor input, int[] normalized_shape, Tensor? weight, float eps",
    example=Example((_ROWS, (8,), _SCALE), flops=192, bytes=232, mod=NN),
)
def rmsnorm(a: Args) -> Work:
    """As layer norm without a mean and without a shift."""
    x = a.tensor("input")
    weight = a.present("weight")
    saved = fresh((rows(a, x),), wide(x.dtype))
    return Work((_RMS_FORWARD + len(weight)) * x.numel, (x, *weight), (like(x), saved))


# x-hat 1, go * weight 1, its product with x-hat and the sum 2, the rest 3: 48 * 7;
# go 48 + x 48 + weight 8 read, 48 + 8 written of 2 bytes = 320, saved 24
@backward_of(rmsnorm, flops=336, bytes=344)
@op(
    "aten::_fused_rms_norm_backward",
    signature=(
        "Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight,"
        "any output_mask"
    ),
    example=Example((_ROWS, _ROWS, (8,), f32(2, 3, 1), _SCALE, (True, True)), flops=336, bytes=344),
)
def rmsnorm_backward(a: Args) -> Work:
    """The gradients of input and weight."""
    x = a.tensor("input")
    weight = a.present("weight")
    saved = fresh((rows(a, x),), wide(x.dtype))
    reads = (like(x), x, saved, *weight)
    return Work(_RMS_BACKWARD * x.numel, reads, asked(a, (x,), weight))
