"""Rounding to FP8, int8 and 4 bits, and back, as libraries for serving do it.

Over the scale, rounded and bounded 5 operations an element, as in `quantization`; if the scale is
found first, the largest of a tensor, row or group 1 more; back again 2. Bytes: read once, results
and scales written once, packed ones at the size of their tensors.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f16, f32, i32, u8
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like, row_count, size

FAMILY = "quantization"

_X, _X8, _ONE, _ROWS = bf16(4, 6), f8(4, 6), f32(1), f32(4, 1)
_WIDE, _PACKED = bf16(1, 64), u8(1, 32)
_ROUND, _LARGEST, _BACK, _GATE = 5, 1, 2, 22


# 24 * 5; 24 of 2 bytes and a scale of 4 read, 24 of 1 written
@op(
    *("_C::static_scaled_fp8_quant", "_C::static_scaled_int8_quant"),
    "aiter::static_per_tensor_quant",
    signature="Tensor out, Tensor input, Tensor scale, Tensor? zeros",
    example=Example((_X8, _X, _ONE), flops=120, bytes=76),
)
# a cache by a scale that is a number
@op(
    "_C_cache_ops::convert_fp8",
    signature="Tensor out, Tensor input",
    example=Example((_X8, _X, 1.0, "fp8"), flops=120, bytes=72),
)
def static_quant(a: Args) -> Work:
    """Rounded by a scale that is given."""
    x = a.tensor("input")
    return Work(_ROUND * x.numel, (x, *a.present("scale", "zeros")), (a.tensor("out"),))


# 24 * 6; 24 of 2 bytes read, 24 of 1 and 4 scales of 4 written
@op(
    *("_C::dynamic_per_token_scaled_fp8_quant", "_C::dynamic_scaled_fp8_quant"),
    *("_C::dynamic_scaled_int8_quant", "aiter::dynamic_per_token_scaled_quant"),
    *("aiter::dynamic_per_tensor_quant", "aiter::dynamic_per_group_scaled_quant_fp4"),
    signature="Tensor out, Tensor input, Tensor scale",
    example=Example((_X8, _X, _ROWS, None), flops=144, bytes=88),
)
@op(
    *("sgl_kernel::sgl_per_token_quant_fp8", "sgl_kernel::sgl_per_token_group_quant_fp8"),
    *("sgl_kernel::sgl_per_token_group_quant_int8", "sgl_kernel::sgl_per_token_group_quant_8bit"),
    *("sgl_kernel::sgl_per_tensor_quant_fp8", "_C::per_token_group_fp8_quant"),
    *("_C::per_token_group_quant_int8", "_C::per_token_group_fp8_quant_packed"),
    *("sglang::per_tensor_quant_fp8", "sglang::per_token_group_quant_8bit"),
    signature="Tensor input, Tensor out, Tensor scale",
    example=Example((_X, _X8, _ROWS), flops=144, bytes=88),
)
# 64 * 6; 64 of 2 bytes and a factor of 4 read, 32 bytes of two numbers each and 4 scales written
@op(
    *("_C::scaled_fp4_quant", "sgl_kernel::scaled_fp4_quant"),
    signature=(
        "Tensor out, Tensor! input, Tensor! scale, Tensor factor",
        # with its results as arguments, or making them
        "Tensor input, Tensor factor, bool swizzled, Tensor? out, Tensor? scale",
    ),
    example=Example((_PACKED, _WIDE, f8(1, 4), _ONE), flops=384, bytes=168),
)
def dynamic_quant(a: Args) -> Work:
    """Rounded by scales that are found first."""
    x = a.tensor("input")
    writes = a.present("out", "scale")
    if not writes and a.op == "scaled_fp4_quant":
        writes = _blocks(x, "fp4")
    elif len(writes) != 2:  # noqa: PLR2004 - numbers and their scales
        raise Unknown("arguments do not fit the op")
    return Work((_ROUND + _LARGEST) * x.numel, (x, *a.present("factor")), writes)


_KINDS = {"mxfp8": (8, 32), "mxfp4": (4, 32), "fp4": (4, 16)}
"""By words in an op's name: bits of a number, and how many numbers share a scale of one byte."""


def _blocks(x: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return the bytes of rounded numbers and of their scales; padding of scales is not counted."""
    bits, group = _KINDS[kind]
    scales = row_count(x) * -(-size(x, -1) // group)
    return fresh((x.numel * bits // 8,), "uint8"), fresh((scales,), "uint8")


# 64 * 6; 64 of 2 bytes and a factor of 4 read, 32 bytes of two numbers each and 4 scales written
@op(
    "vllm::flashinfer_nvfp4_quantize",
    signature="Tensor input, Tensor factor",
    example=Example((_WIDE, _ONE), flops=384, bytes=168),
)
@op(
    "sglang::scaled_fp4_quant",
    signature="Tensor input, Tensor out, Tensor scale, Tensor factor",
    example=Example((_WIDE, _PACKED, f8(1, 4), _ONE), flops=384, bytes=168),
)
@op(
    *("_C::scaled_fp4_experts_quant", "sgl_kernel::scaled_fp4_experts_quant"),
    signature="Tensor out, Tensor scale, Tensor input, Tensor factor",
    example=Example((_PACKED, i32(128, 4), _WIDE, _ONE, _ONE, _ONE), flops=384, bytes=168),
)
# 64 of 2 bytes read, 64 of 1 and 2 scales of 1 written
@op(
    *("vllm::mxfp8_quantize", "sglang::flashinfer_mxfp8_quantize"),
    *("vllm::flashinfer_mxfp8_quantize_8x4", "_C::mxfp8_experts_quant"),
    signature="Tensor input",
    example=Example((_WIDE, False, 32), flops=384, bytes=194),
)
# 64 of 2 bytes read, 32 of 1 and 2 scales of 1 written
@op(
    "_C::mxfp4_experts_quant",
    signature="Tensor out, Tensor scale, Tensor input",
    example=Example((_PACKED, _ONE, _WIDE), flops=384, bytes=162),
)
@op(
    "vllm::flashinfer_mxfp4_quantize",
    signature="Tensor input",
    example=Example((_WIDE, "cuda"), flops=384, bytes=162),
)
# 32 products of a gate, 22 each, and 32 * 6; 64 of 2 bytes and a factor of 4 read, 16 and 2 written
@op(
    "_C::silu_and_mul_scaled_fp4_experts_quant",
    signature="Tensor out, Tensor scale, Tensor input, Tensor factor",
    example=Example((u8(1, 16), i32(128, 4), _WIDE, _ONE, _ONE, _ONE), flops=896, bytes=150),
)
# 16 and 1 of 1 byte written
@op(
    "_C::silu_and_mul_mxfp4_experts_quant",
    signature="Tensor out, Tensor scale, Tensor input",
    example=Example((u8(1, 16), _ONE, _WIDE, _ONE, _ONE, 8), flops=896, bytes=145),
)
def block_quant(a: Args) -> Work:
    """Rounded in blocks with a scale of a byte each, perhaps after a gated activation."""
    x = a.tensor("input")
    gated = "silu_and_mul" in a.op
    out = like(x, (*x.shape[:-1], size(x, -1) // 2)) if gated else x
    kind = next(name for name in _KINDS if name in a.op)
    each = _ROUND + _LARGEST + _GATE * gated
    return Work(each * out.numel, (x, *a.present("factor")), _blocks(out, kind))


def group_scales(a: Args, x: Tensor) -> Tensor:
    """Return a scale for each group of each row. Raises Unknown if the groups are not recorded."""
    group = a.integer("group", 0)
    if group <= 0:
        raise Unknown("group not recorded")
    return fresh((row_count(x), -(-size(x, -1) // group)), "float32")


# 24 * 6; 24 of 2 bytes read, 24 of 1 and 4 scales of 4 written
@op(
    "vllm::rocm_aiter_per_token_quant",
    signature="Tensor input, dtype dtype, Tensor? scale",
    example=Example((_X, 24, None), flops=144, bytes=88),
)
@op(
    "bitsandbytes::int8_vectorwise_quant",
    signature="Tensor input",
    example=Example((_X, 0.0), flops=144, bytes=88),
)
# a scale of 4 for each 3
@op(
    *("vllm::triton_per_token_group_quant_fp8", "vllm::rocm_aiter_group_fp8_quant"),
    signature="Tensor input, int group",
    example=Example((_X, 3), flops=144, bytes=104),
)
def rowwise_quant(a: Args) -> Work:
    """Each row or group of one rounded by a scale of its own; int8's outliers are not counted."""
    x = a.tensor("input")
    dtype: str | None = "float8_e4m3fn"
    if "group" in a.values:
        scales = group_scales(a, x)
    else:
        scales = fresh((row_count(x), min(1, size(x, -1))), "float32")
        dtype = "int8" if "int8" in a.op else a.dtype()
    return Work((_ROUND + _LARGEST) * x.numel, (x,), (fresh(x.shape, dtype), scales))


# 64 * 6; 64 of 2 bytes read, 32 bytes and 1 scale of 4 written
@op(
    "bitsandbytes::quantize_4bit",
    signature="Tensor input, int block",
    example=Example((bf16(64), 64, "nf4", 0), flops=384, bytes=164),
)
# and a table of 256 numbers of 4, read; a byte each
@op(
    "bitsandbytes::quantize_blockwise",
    signature="Tensor input, Tensor code, int block",
    example=Example((bf16(64), f32(256), 64), flops=384, bytes=1220),
)
def blockwise_quant(a: Args) -> Work:
    """Each block over its largest number, to the nearest number of a table."""
    x, block = a.tensor("input"), max(1, a.integer("block", 64))
    bits = 4 if a.op.endswith("4bit") else 8
    writes = (fresh((-(-x.numel * bits // 8),), "uint8"), fresh((-(-x.numel // block),), "float32"))
    return Work((_ROUND + _LARGEST) * x.numel, (x, *a.present("code")), writes)


# 64 * 2; 32 bytes and 2 scales of 1 read, 64 of 2 bytes written
@op(
    *("vllm::dequant_mxfp4", "sglang::dequant_mxfp4"),
    signature="Tensor input, Tensor scale, dtype dtype",
    example=Example((u8(1, 32), u8(1, 2), 15), flops=128, bytes=162),
)
def dequant_mxfp4(a: Args) -> Work:
    """Two numbers in a byte, times their block's scale."""
    x, scale = a.tensor("input"), a.tensor("scale")
    out = fresh((*x.shape[:-1], 2 * size(x, -1)), a.dtype())
    return Work(_BACK * out.numel, (x, scale), (out,))


# 64 * 2; 32 bytes and a scale of 4 read, 64 of 2 bytes written
@op(
    "bitsandbytes::dequantize_4bit",
    signature="Tensor input, Tensor scale, int block, any kind, int[] shape, dtype dtype",
    example=Example((u8(32, 1), _ONE, 64, "nf4", (8, 8), 15), flops=128, bytes=164),
)
# 64 bytes, a scale of 4 and a table of 256 numbers of 4 read
@op(
    "bitsandbytes::dequantize_blockwise",
    signature="Tensor input, Tensor scale, Tensor code, int block, dtype dtype",
    example=Example((u8(64), _ONE, f32(256), 64, 15), flops=128, bytes=1220),
)
def dequant_blockwise(a: Args) -> Work:
    """Numbers of a table, or of 4 bits in stated sizes, times their block's scale."""
    x = a.tensor("input")
    out = fresh(a.sizes("shape") if a.op.endswith("4bit") else x.shape, a.dtype())
    return Work(_BACK * out.numel, (x, a.tensor("scale"), *a.present("code")), (out,))


# 8 rows of 1 by 8 in each: 64 * 2; 8 of 4 bytes, 8 of 2 and 1 of 4 read, 64 of 2 written
@op(
    *("_C::awq_dequantize", "sgl_kernel::awq_dequantize"),
    signature="Tensor input, Tensor scale, Tensor zeros",
    example=Example((i32(8, 1), f16(1, 8), i32(1, 1)), flops=128, bytes=180),
)
def awq_dequant(a: Args) -> Work:
    """Eight numbers in an element, times their group's scale."""
    x, scale = a.tensor("input"), a.tensor("scale")
    out = like(scale, (size(x, 0), size(scale, -1)))
    return Work(_BACK * out.numel, (x, scale, a.tensor("zeros")), (out,))
