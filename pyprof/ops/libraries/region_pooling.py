"""torchvision's pooling of regions of an image, forward and backward.

RoIAlign averages s * s samples for each output, each interpolated from 4 neighbours: 7 operations
and an addition, which for the last is the division; its gradient is multiplied by 4 weights,
divided, and added at 4 pixels (torchvision/csrc/ops/cuda/roi_align_kernel.cu). Positions outside of
the image and the weights are not told apart, as in `resampling`. Without a sampling ratio, and in
RoIPool, the number of samples follows from the boxes: FLOPs are unknown.

Bytes: of the image no more than the samples' neighbours, as a few boxes touch little of it; boxes
and results once, a gradient of the image whole.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16, i32
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, has_rank, require, size

FAMILY = "pool"

_X, _ROIS, _POOLED = f16(2, 8, 16, 16), f16(3, 5), f16(3, 8, 2, 2)
_OUTPUT = "float spatial_scale, int pooled_height, int pooled_width"
_IMAGE = "int batch_size, int channels, int height, int width"
_NO_RATIO = "how many samples a bin has depends on the boxes: no sampling_ratio"
_NO_BINS = "how many pixels a bin has depends on the boxes"
_TAPS = 4
_FORWARD, _BACKWARD = 8, 12


def _samples(a: Args) -> int | None:
    """Return the samples of a bin; None if they depend on the boxes."""
    ratio = a.integer("sampling_ratio", -1)
    return ratio**2 if ratio > 0 else None


def _pooled(a: Args, x: Tensor) -> Tensor:
    """Return the result; position-sensitive pooling takes each bin from channels of its own."""
    rois, sizes = a.tensor("rois"), (a.integer("pooled_height", 0), a.integer("pooled_width", 0))
    require(has_rank(x, 4) and has_rank(rois, 2) and min(sizes) >= 1)
    channels = size(x, 1) // (sizes[0] * sizes[1]) if a.op.startswith("ps_") else size(x, 1)
    return fresh((size(rois, 0), channels, *sizes), x.dtype)


def _image(a: Args, dtype: str | None) -> Tensor:
    """Return the image's gradient."""
    names = ("batch_size", "channels", "height", "width")
    return fresh((a.integer(name, 0) for name in names), dtype)


def _read(x: Tensor, most: int) -> Tensor:
    """Return the part of the image that is read, no more than this many elements."""
    return fresh((min(x.numel, most),), x.dtype)


# 3 * 8 * 2 * 2 = 96 outputs of 4 samples: 96 * 4 * 8; 96 * 4 * 4 = 1536 of the image's 4096 and 15
# read, 96 written of 2 bytes
@op(
    "torchvision::roi_align",
    signature=f"Tensor input, Tensor rois, {_OUTPUT}, int sampling_ratio, bool aligned",
    example=Example((_X, _ROIS, 1.0, 2, 2, 2, False), flops=3072, bytes=3294),
)
# 3 * 2 * 2 * 2 = 24 outputs: 24 * 4 * 8; 24 * 4 * 4 = 384 and 15 read, 24 written of 2 bytes, and
# 24 channels of 4
@op(
    "torchvision::ps_roi_align",
    signature=f"Tensor input, Tensor rois, {_OUTPUT}, int sampling_ratio",
    example=Example((_X, _ROIS, 1.0, 2, 2, 2), flops=768, bytes=942),
)
def roi_align(a: Args) -> Work:
    """The mean of samples on a grid in each bin; position-sensitive ones keep their channel."""
    x, samples = a.tensor("input"), _samples(a)
    out = _pooled(a, x)
    channel = (fresh(out.shape, "int32"),) if a.op.startswith("ps_") else ()
    reads = (_read(x, _TAPS * (samples or 1) * out.numel), a.tensor("rois"))
    if samples is None:
        return Work(None, reads, (out, *channel), no_flops=_NO_RATIO)
    return Work(_FORWARD * samples * out.numel, reads, (out, *channel))


# 96 incoming gradients, 4 samples each: 96 * 4 * 12; 96 and 15 read, 4096 written of 2 bytes
@op(
    "torchvision::_roi_align_backward",
    signature=f"Tensor grad_output, Tensor rois, {_OUTPUT}, {_IMAGE}, int sampling_ratio",
    example=Example((_POOLED, _ROIS, 1.0, 2, 2, 2, 8, 16, 16, 2, False), flops=4608, bytes=8414),
)
# 24 * 4 * 12; 24 and 15 of 2 bytes and 24 of 4 read, 4096 of 2 written
@op(
    "torchvision::_ps_roi_align_backward",
    signature=(
        f"Tensor grad_output, Tensor rois, Tensor channels_read, {_OUTPUT}, int sampling_ratio,"
        f"{_IMAGE}"
    ),
    example=Example(
        (f16(3, 2, 2, 2), _ROIS, i32(3, 2, 2, 2), 1.0, 2, 2, 2, 2, 8, 16, 16),
        flops=1152,
        bytes=8366,
    ),
)
def roi_align_backward(a: Args) -> Work:
    """Each incoming gradient is spread over the neighbours of its bin's samples."""
    go, samples = a.tensor("grad_output"), _samples(a)
    reads = (go, a.tensor("rois"), *a.present("channels_read"))
    writes = (_image(a, go.dtype),)
    if samples is None:
        return Work(None, reads, writes, no_flops=_NO_RATIO)
    return Work(_BACKWARD * samples * go.numel, reads, writes)


# 96 of the image's 4096 at least and 15 read, 96 of 2 bytes and 96 indices of 4 written
@op(
    "torchvision::roi_pool",
    signature=f"Tensor input, Tensor rois, {_OUTPUT}",
    example=Example((_X, _ROIS, 1.0, 2, 2), flops=None, bytes=798),
)
# 24 and 15 read, 24 of 2 bytes and 24 channels of 4 written
@op(
    "torchvision::ps_roi_pool",
    signature=f"Tensor input, Tensor rois, {_OUTPUT}",
    example=Example((_X, _ROIS, 1.0, 2, 2), flops=None, bytes=222),
)
def roi_pool(a: Args) -> Work:
    """The largest pixel of each bin and its place, or the mean and its channel."""
    x = a.tensor("input")
    out = _pooled(a, x)
    reads = (_read(x, out.numel), a.tensor("rois"))
    return Work(None, reads, (out, fresh(out.shape, "int32")), no_flops=_NO_BINS)


# an addition for each of 96; 96 and 15 of 2 bytes and 96 indices of 4 read, 4096 of 2 written
@op(
    "torchvision::_roi_pool_backward",
    signature=f"Tensor grad_output, Tensor rois, Tensor source, {_OUTPUT}, {_IMAGE}",
    example=Example(
        (_POOLED, _ROIS, i32(3, 8, 2, 2), 1.0, 2, 2, 2, 8, 16, 16), flops=96, bytes=8798
    ),
)
# spread over the pixels of each bin; 24 and 15 of 2 bytes and 24 channels of 4 read, 4096 written
@op(
    "torchvision::_ps_roi_pool_backward",
    signature=f"Tensor grad_output, Tensor rois, Tensor source, {_OUTPUT}, {_IMAGE}",
    example=Example(
        (f16(3, 2, 2, 2), _ROIS, i32(3, 2, 2, 2), 1.0, 2, 2, 2, 8, 16, 16), flops=None, bytes=8366
    ),
)
def roi_pool_backward(a: Args) -> Work:
    """Each incoming gradient is added where the largest pixel was, or to all pixels of its bin."""
    go = a.tensor("grad_output")
    reads, writes = (go, a.tensor("rois"), a.tensor("source")), (_image(a, go.dtype),)
    if "ps_" in a.op:
        return Work(None, reads, writes, no_flops=_NO_BINS)
    return Work(go.numel, reads, writes)
