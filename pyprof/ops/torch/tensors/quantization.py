"""Quantization: numbers rounded to a grid, and the rounding that training pretends.

Over the scale, rounded, plus the zero point, bounded on two sides: 5 operations an element; back
again 2. Bytes: read once, written once in the type that the result has; a mask of what stayed
within bounds is a byte an element.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, b8, f16, f32, i32, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "quantization"

_X = f16(4, 6)
_SCALES, _POINTS = f32(4), i32(4)
_TENSOR = "Tensor input, Number scale, Number zero_point, int quant_min, int quant_max"
_CHANNEL = "Tensor input, Number scale, Number zero_point, int axis, int quant_min, int quant_max"
_ROUND, _BACK, _EXTREMES = 5, 2, 2


# there and back, 7 operations: 24 * 7; 24 read, 24 written of 2 bytes
@op(
    "fake_quantize_per_tensor_affine",
    signature=_TENSOR,
    example=Example((_X, 0.1, 0, 0, 255), flops=168, bytes=96),
)
# and the mask's 24
@op(
    "fake_quantize_per_tensor_affine_cachemask",
    signature=_TENSOR,
    example=Example((_X, 0.1, 0, 0, 255), flops=168, bytes=120, mod="aten"),
)
# 4 scales and 4 zero points of 4 bytes more read
@op(
    "fake_quantize_per_channel_affine",
    signature=_CHANNEL,
    example=Example((_X, _SCALES, _POINTS, 0, 0, 255), flops=168, bytes=128),
)
@op(
    "fake_quantize_per_channel_affine_cachemask",
    signature=_CHANNEL,
    example=Example((_X, _SCALES, _POINTS, 0, 0, 255), flops=168, bytes=152, mod="aten"),
)
def fake_quantize(a: Args) -> Work:
    """To the grid and back."""
    x = a.tensor("input")
    mask = (fresh(x.shape, "bool"),) if a.op.endswith("_cachemask") else ()
    return Work(
        (_ROUND + _BACK) * x.numel, (x, *a.present("scale", "zero_point")), (like(x), *mask)
    )


# smallest and largest 2, there and back 7: 24 * 9; 24 of 2 bytes, two bounds, a scale and a zero
# point of 4 read, 24 of 2, the bounds of 4 and the mask's 24 written
@op(
    *("_fused_moving_avg_obs_fq_helper", "fused_moving_avg_obs_fake_quant"),
    signature=(
        "Tensor input, Tensor observer_on, Tensor fake_quant_on, Tensor running_min,"
        "Tensor running_max, Tensor scale, Tensor zero_point"
    ),
    example=Example(
        (_X, *(i64(1),) * 2, *(f32(1),) * 3, _POINTS), flops=216, bytes=156, mod="aten"
    ),
)
def observed(a: Args) -> Work:
    """The observed range is updated, then as `fake_quantize`."""
    x = a.tensor("input")
    bounds = (a.tensor("running_min"), a.tensor("running_max"))
    writes = (like(x), *bounds, fresh(x.shape, "bool"))
    flops = (_EXTREMES + _ROUND + _BACK) * x.numel
    return Work(flops, (x, *bounds, *a.present("scale", "zero_point")), writes)


# go where the mask is set: 24; go 24 of 2 bytes and the mask's 24 read, 24 written
@op(
    *("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine_cachemask"),
    direction=BPROP,
    signature=_TENSOR,
    example=Example((_X, 0.1, 0, 0, 255), flops=24, bytes=120),
)
@op(
    *("fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask"),
    direction=BPROP,
    signature=_CHANNEL,
    example=Example((_X, _SCALES, _POINTS, 0, 0, 255), flops=24, bytes=120),
)
@backward_of(observed, flops=24, bytes=120)
@op(
    "fake_quantize_per_tensor_affine_cachemask_backward",
    "fake_quantize_per_channel_affine_cachemask_backward",
    signature="Tensor input, Mask mask",
    example=Example((_X, b8(4, 6)), flops=24, bytes=120, mod="aten"),
)
def fake_quantize_backward(a: Args) -> Work:
    """The incoming gradient where the input was within bounds."""
    x = a.tensor("input")
    return Work(x.numel, (like(x), fresh(x.shape, "bool")), (like(x),))


# 24 * 5; 24 read of 2 bytes, 24 written of one
@op(
    "quantize_per_tensor",
    signature="Tensor input, Number scale, Number zero_point, *, dtype dtype",
    example=Example((_X, 0.1, 0), flops=120, bytes=72, kwargs={"dtype": "torch.quint8"}),
)
@op(
    "quantize_per_channel",
    signature="Tensor input, Number scale, Number zero_point, int axis, *, dtype dtype",
    # and 4 scales and 4 zero points of 4
    example=Example(
        (_X, _SCALES, _POINTS, 0), flops=120, bytes=104, kwargs={"dtype": "torch.qint8"}
    ),
)
def quantize(a: Args) -> Work:
    """To the grid."""
    x = a.tensor("input")
    asked = a.dtype() if a.known("dtype") else None
    return Work(_ROUND * x.numel, (x, *a.present("scale", "zero_point")), (fresh(x.shape, asked),))


# 24 * 2; 24 read of one byte, 24 written of 4
@op(
    "dequantize",
    signature="Tensor input",
    example=Example((Tensor((4, 6), "quint8"),), flops=48, bytes=120),
)
def dequantize(a: Args) -> Work:
    """From the grid to float32."""
    x = a.tensor("input")
    return Work(_BACK * x.numel, (x,), (fresh(x.shape, "float32"),))
