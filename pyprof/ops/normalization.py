"""Batch, layer, group, instance and RMS norm, forward and backward.

An element costs: the mean 1, the variance 3 (subtract, square, add), the normalisation 2, scale
and shift 1 each. Statistics that are given (batch norm in evaluation) save the first 4. Bytes:
the input read once and the output written once, scale, shift and statistics likewise; kernels
that compute statistics first read the input twice.
"""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "norm"

_IMAGE = Tensor((2, 4, 3, 3), "float16")
_CHANNELS = Tensor((4,), "float32")
_ROWS = Tensor((2, 3, 8), "float16")
_SCALE = Tensor((8,), "float16")

_STATISTICS = 4
_NORMALISE = 2
# x-hat again 2, the sums of go and of go * x-hat 3, and (go - mean - x-hat * mean) * scale 5
_BACKWARD = 10


def wide(dtype: str | None) -> str | None:
    """Statistics are kept in float32 at least."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def norm(a: Args, x: Tensor, groups: int, *, statistics: bool = True) -> Work:
    """Give the forward work for x in so many groups with a mean and a deviation each."""
    affine = a.present("weight", "bias")
    each = _STATISTICS * statistics + _NORMALISE + len(affine)
    saved = (fresh((groups,), wide(x.dtype)),) * (2 * statistics)
    return Work(each * x.numel, (x, *affine), (like(x), *saved))


def norm_backward(a: Args, x: Tensor, go: Tensor, groups: int) -> Work:
    """Give the work of the gradients of x, scale and shift."""
    saved = (fresh((groups,), wide(x.dtype)),) * 2
    weight = a.present("weight")
    written = asked(a, (x,), weight, a.present("bias"))
    return Work(_BACKWARD * x.numel, (go, x, *saved, *weight), written)


def asked(a: Args, *owners: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Give the gradients that `output_mask` asks for, of each owner; all where it is not known."""
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
    example=Call("torch.nn.functional", "batch_norm", (_IMAGE, *(_CHANNELS,) * 4, True)),
    flops=576,
    bytes=416,
)
@op(
    *("batch_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"),
    *("_batch_norm_impl_index", "_native_batch_norm_legit", "_batch_norm_with_update"),
    signature=_TORCH,
    example=Call("torch", "batch_norm", (_IMAGE, *(_CHANNELS,) * 4, True, 0.1, 1e-5, True)),
    flops=576,
    bytes=416,
)
# 72 * 4, without statistics: 144 of 2 bytes, four vectors of 4 of 4
@op(
    *("_native_batch_norm_legit_no_training", "_batch_norm_no_update"),
    signature=_TORCH.replace("bool training, ", ""),
    example=Call(
        "aten", "_native_batch_norm_legit_no_training", (_IMAGE, *(_CHANNELS,) * 4, 0.1, 1e-5)
    ),
    flops=288,
    bytes=352,
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
    work = norm(a, x, size(x, 1), statistics=training)
    updated = running if training else ()
    return Work(work.flops, (*work.reads, *running), (*work.writes, *updated))


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
def batchnorm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift."""
    x = a.tensor("input")
    return norm_backward(a, x, like(x), size(x, 1))


# As above: the gradients of scale and shift are as large as the scale
@op(
    *("aten::native_batch_norm_backward", "aten::batch_norm_backward"),
    signature=(
        "Tensor grad_output, Tensor input, Tensor? weight, Tensor? running_mean,"
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool training, float eps,"
        "any output_mask"
    ),
    example=Call("aten", "native_batch_norm_backward", (_IMAGE, _IMAGE, _CHANNELS)),
    flops=720,
    bytes=512,
)
@op(
    *("aten::cudnn_batch_norm_backward", "aten::miopen_batch_norm_backward"),
    signature="Tensor input, Tensor grad_output, Tensor? weight",
    example=Call("aten", "cudnn_batch_norm_backward", (_IMAGE, _IMAGE, _CHANNELS)),
    flops=720,
    bytes=512,
)
def batch_norm_backward_op(a: Args) -> Work:
    """The same as ATen's own op."""
    go, x = a.tensor("grad_output"), a.tensor("input")
    weight = a.optional("weight")
    return norm_backward(a.replaced(bias=weight), x, go, size(x, 1))


# --- layer norm ---------------------------------------------------------------------------------
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


# 48 elements * 8; 48 + 48, scale 8 and shift 8 of 2 bytes = 224; mean and deviation of 6 rows of
# 4 bytes = 48
@op(
    *("layer_norm", "native_layer_norm"),
    signature="Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
    example=Call("torch.nn.functional", "layer_norm", (_ROWS, (8,), _SCALE, _SCALE, 1e-5)),
    flops=384,
    bytes=272,
    batch=("input",),
)
def layernorm(a: Args) -> Work:
    """Each row is normalised by its own mean and deviation, which are kept for the backward."""
    x = a.tensor("input")
    return norm(a, x, rows(a, x))


# 48 * 10; go 48 + x 48 + scale 8 read, 48 + 8 + 8 written of 2 bytes = 336; saved 2 * 6 of 4 = 48
@op(*("layer_norm", "native_layer_norm"), direction=BPROP, flops=480, bytes=384, batch=("input",))
def layernorm_backward(a: Args) -> Work:
    """The gradients of input, scale and shift."""
    x = a.tensor("input")
    return norm_backward(a, x, like(x), rows(a, x))


@op(
    "aten::native_layer_norm_backward",
    signature=(
        "Tensor grad_output, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd,"
        "Tensor? weight, Tensor? bias, any output_mask"
    ),
    example=Call(
        "aten",
        "native_layer_norm_backward",
        (_ROWS, _ROWS, (8,), *(Tensor((2, 3, 1), "float32"),) * 2, _SCALE, _SCALE),
    ),
    flops=480,  # as above
    bytes=384,
    batch=("grad_output", "input", "mean", "rstd"),
)
def layer_norm_backward_op(a: Args) -> Work:
    """The same as ATen's own op."""
    x = a.tensor("input")
    return norm_backward(a, x, a.tensor("grad_output"), rows(a, x))
