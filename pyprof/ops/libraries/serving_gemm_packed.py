"""Matrix products whose factors are of two types, or of packed ones: vLLM's and SGLang's ops.

2 M N K as in `gemm`; a packed weight is read at the size of its tensor, with its scales. What an op
rounds before it multiplies is not counted. Where it takes activations of 16 bits and rounds them
itself, the product is of narrow numbers: the kernels' names say so.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f16, f32, i8, i16, i32, i64, u8
from pyprof.ops.libraries.serving_gemm import (
    product_of_stated_sizes,
    stored_product,
    weight_product,
)
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import product
from pyprof.ops.torch.linalg.gemm_low_precision import read_tensors
from pyprof.ops.work import Args, Work, fresh, has_rank, require, size

FAMILY = "gemm"

_X, _W = bf16(4, 6), bf16(5, 6)
_OUT, _BIAS = bf16(4, 5), bf16(5)
_X8, _W8, _K8 = (Tensor(shape, "float8_e4m3fn") for shape in ((4, 6), (5, 6), (6, 5)))
_ROWS, _COLUMNS, _ONE = (Tensor(shape, "float32") for shape in ((4, 1), (1, 5), (1,)))
_TOKENS, _HALVES = f16(4, 8), f16(1, 8)
_INT4 = i32(1, 8)  # 8 of K in an element, 8 of N
_X4, _W4, _T4 = (Tensor(shape, "uint8") for shape in ((4, 32), (5, 32), (32, 5)))
_S4, _V4 = f8(4, 4), f8(5, 4)
_SIZES = "int m, int n, int k"


# 2 * 4 * 5 * 6; 24 + 30 + out 20 of 2 bytes
@op(
    "vllm::min_latency_fused_qkv_a_proj",
    signature="Tensor x, Tensor weight",
    example=Example((_X, _W), flops=240, bytes=148),
)
# the result of 4 bytes
@op(
    "_moe_C::router_gemm_bf16_fp32",
    signature="Tensor x, Tensor weight",
    example=Example((_X, _W), flops=240, bytes=188),
)
def router(a: Args) -> Work:
    """A small product of its own kernel; a router's gates come out as float32."""
    work = weight_product(a, inner_first=False)
    if "router" not in a.op:
        return work
    return replace(work, writes=tuple(fresh(t.shape, "float32") for t in work.writes))


# 2 * 4 * 5 * 6; 24 + 30 + out 20 of 2 bytes
@op(
    *("_C::fp32_router_gemm", "sglang::flashinfer_dsv3_router_gemm"),
    signature="Tensor out, Tensor x, Tensor weight",
    example=Example((_OUT, _X, _W), flops=240, bytes=148),
)
def router_out(a: Args) -> Work:
    """A router's gates, into a tensor that is given."""
    return weight_product(a, inner_first=None)


_A8W8 = "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b"


# 2 * 4 * 5 * 6; 24 + 30 of 1 byte, 4 + 5 scales of 4, out 20 of 2
@op(
    *("vllm::padded_cutlass", "vllm::int8_scaled_mm_func"),
    signature=(f"{_A8W8}, int[] block, dtype out_dtype", f"{_A8W8}, dtype out_dtype, Tensor? bias"),
    example=Example((_X8, _W8, _ROWS, _COLUMNS, (128, 128), 15), flops=240, bytes=130),
)
@op(
    *("sglang::flashinfer_gemm_fp8_nt_groupwise", "vllm::rocm_aiter_gemm_a8w8_blockscale"),
    "vllm::rocm_aiter_gemm_a8w8_blockscale_bpreshuffle",
    "vllm::rocm_aiter_triton_gemm_a8w8_blockscale_preshuffle",
    signature=f"{_A8W8}, dtype out_dtype",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, 15), flops=240, bytes=130),
)
@op(
    *("vllm::rocm_aiter_gemm_a8w8", "vllm::rocm_aiter_w8a8_gemm"),
    signature=f"{_A8W8}, Tensor? bias, dtype out_dtype",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, None, 15), flops=240, bytes=130),
)
@op(
    "sglang::triton_mxfp8_block_scaled_matmul",
    signature="Tensor x, Tensor scale_a, Tensor weight, Tensor scale_b, dtype out_dtype",
    example=Example((_X8, _ROWS, _W8, _COLUMNS, 15), flops=240, bytes=130),
)
def scaled_by_rows(a: Args) -> Work:
    """A product of FP8 or int8 matrices with their scales; the weight lies as [N, K]."""
    return weight_product(a, inner_first=False)


# 2 * 4 * 5 * 6; 24 + 30 of 1 byte, 4 + 5 scales of 4, out 20 of 2
@op(
    "vllm::mm_mxfp8",
    signature=f"{_A8W8}, dtype out_dtype",
    example=Example((_X8, _K8, _ROWS, _COLUMNS, 15, "cutlass"), flops=240, bytes=130),
)
@op(
    "sglang::flashinfer_mm_mxfp8",
    signature="Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, dtype out_dtype",
    example=Example((_X8, _K8, _ROWS, _COLUMNS, 15), flops=240, bytes=130),
)
@op(
    "vllm::rocm_per_tensor_w8a8_scaled_mm_impl",
    "vllm::rocm_per_tensor_float_w8a8_scaled_mm_impl",
    signature=(
        "Tensor x, Tensor weight, dtype out_dtype, Tensor scale_a, Tensor scale_b, Tensor? bias"
    ),
    example=Example((_X8, _K8, 15, _ROWS, _COLUMNS, None), flops=240, bytes=130),
)
def scaled_by_columns(a: Args) -> Work:
    """The same with a weight as [K, N]; where that is square, it is the same to the work."""
    return weight_product(a, inner_first=None)


# 2 * 4 * 5 * 6; x 24 of 2 bytes, 30 of 1, 5 scales of 4, out 20 of 2
@op(
    "vllm::flashinfer_fp8_blockscale_gemm",
    *("vllm::dynamic_flashinfer_deepgemm_blockscale_gemm", "vllm::gemm_with_dynamic_quant"),
    "sglang::triton_mxfp8_blockscaled_linear",
    signature="Tensor x, Tensor weight, Tensor scale_b",
    example=Example((_X, _W8, _COLUMNS), flops=240, bytes=138),
)
@op(
    "vllm::apply_w8a8_block_fp8_linear",
    signature=(
        "Tensor x, Tensor weight, int[] block, Tensor scale_b, Tensor? scale_a, Tensor? bias"
    ),
    example=Example((_X, _W8, (128, 128), _COLUMNS, None, None), flops=240, bytes=138),
)
def rounded_inside(a: Args) -> Work:
    """Activations of 16 bits, rounded inside, times a weight of 8 bits, or of 4 in a byte each."""
    x, w = a.tensor("x"), a.tensor("weight")
    packed = 2 if w.dtype in _PACKED else 1
    require(has_rank(w, 2) and size(w, 1) * packed == size(x, -1))
    return stored_product(a, x, w, size(w, 0), size(x, -1))


_PACKED = ("uint8", "float4_e2m1fn_x2")


# 64 numbers in 32 bytes: 2 * 4 * 5 * 64; 128 + 160 of 1 byte, 16 + 20 scales of 1, a factor of 4,
# out 20 of 2
@op(
    *("vllm::flashinfer_mm_fp4", "sglang::fp4_gemm"),
    signature=(
        "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor zeros, dtype out_dtype",
    ),
    example=Example((_X4, _T4, _S4, _V4, _ONE, 15, "cutlass"), flops=2560, bytes=368),
)
@op(
    *("vllm::matmul_mxf4_bf16", "vllm::matmul_nvf4_bf16"),
    signature="Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor zeros",
    example=Example((_X4, _W4, _S4, _V4, _ONE), flops=2560, bytes=368, op="matmul_nvf4_bf16"),
)
def fp4(a: Args) -> Work:
    """A product of FP4 matrices, two numbers in a byte; the weight either way round."""
    x = a.tensor("x")
    require(x.dtype in _PACKED)
    return weight_product(a, inner_first=None, packed=2)


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, the weight's 8 of 4, 8 scales of 2
@op(
    "_C::machete_mm",
    signature=(
        "Tensor x, Tensor weight, int kind, dtype out_dtype, Tensor? scale_b, Tensor? zeros,"
        "int group, Tensor? channel_scales, Tensor? token_scales"
    ),
    example=Example((_TOKENS, _INT4, 4, None, _HALVES, None, 8, None, None), flops=512, bytes=176),
)
# 8 scales of each sort and a scale a token of 4 bytes besides the groups'
@op(
    "_C::cutlass_w4a8_mm",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_b, int group, Tensor channel_scales,"
        "Tensor token_scales, dtype out_dtype"
    ),
    example=Example(
        (f8(4, 8), _INT4, f8(1, 8), 8, f32(1, 8), _ROWS, 15, None), flops=512, bytes=184
    ),
)
@op(
    "vllm::triton_w4a16_gemm",
    signature="Tensor x, Tensor weight, Tensor scale_b, Tensor? zeros, int group",
    example=Example((_TOKENS, i32(8, 1), _HALVES, None, 8), flops=512, bytes=176),
)
def packed(a: Args) -> Work:
    """A weight of few bits, eight of 4 or four of 8 in an element of 32, along either dimension.

    A column's scales tell how many outputs there are.
    """
    x, w, k = a.tensor("x"), a.tensor("weight"), size(a.tensor("x"), -1)
    n = size(w, 1)
    if size(w, 0) == k and a.op == "triton_w4a16_gemm":
        n = size(a.tensor("scale_b"), -1)
    elif not size(w, 0) or k % size(w, 0):
        raise Unknown("arguments do not fit the op")
    work = stored_product(a, x, w, n, k)
    return replace(work, reads=work.reads + read_tensors(a, "channel_scales", "token_scales"))


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, scales 8 of 2
@op(
    "_C::fp8_marlin_gemm",
    signature=f"Tensor x, Tensor weight, Tensor scale_b, Tensor workspace, int kind, {_SIZES}",
    example=Example((_TOKENS, _INT4, _HALVES, i32(16), 8, 4, 8, 8), flops=512, bytes=176),
)
@op(
    "sglang::unified_apply_gptq_marlin_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_b, Tensor zeros, Tensor places, Tensor order,"
        "Tensor workspace, int n, int k"
    ),
    example=Example((_TOKENS, _INT4, _HALVES, *(i32(0),) * 3, i32(16), 8, 8), flops=512, bytes=176),
)
@op(
    "sglang::unified_apply_gptq_marlin_gemm_with_wtype",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_b, Tensor zeros, Tensor places, Tensor order,"
        "Tensor workspace, int kind, int n, int k"
    ),
    example=Example(
        (_TOKENS, _INT4, _HALVES, *(i32(0),) * 3, i32(16), 4, 8, 8), flops=512, bytes=176
    ),
)
@op(
    "sglang::apply_fp8_marlin_linear",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_b, Tensor workspace, int n, int k, Tensor? bias"
    ),
    example=Example((_TOKENS, _INT4, _HALVES, i32(16), 8, 8, None), flops=512, bytes=176),
)
@op(
    "vllm::marlin_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a, Tensor? factor,"
        f"Tensor? zeros, Tensor? workspace, int kind, {_SIZES}"
    ),
    example=Example(
        (_TOKENS, _INT4, None, _HALVES, None, None, None, None, 4, 4, 8, 8), flops=512, bytes=176
    ),
)
# two of four kept: the weight's 4 of 4 bytes, 8 places of 2
@op(
    "_C::gptq_marlin_24_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor places, Tensor scale_b, Tensor workspace, int kind,"
        f"{_SIZES}"
    ),
    example=Example(
        (_TOKENS, i32(1, 4), i16(1, 8), _HALVES, i32(16), 4, 4, 8, 8), flops=512, bytes=176
    ),
)
def marlin(a: Args) -> Work:
    """A weight in an order of its own."""
    return product_of_stated_sizes(a)


# 2 * 4 * 5 * 6 as though dense; x 24, 5 * 3 kept and 5 * 3 places of 1 byte, 4 + 5 scales of 4, out
# 20 of 2
@op(
    "_C::cutlass_scaled_sparse_mm",
    signature=(
        "Tensor out, Tensor x, Tensor weight, Tensor places, Tensor scale_a, Tensor scale_b,"
        "Tensor? bias"
    ),
    example=Example((_OUT, _X8, f8(5, 3), u8(5, 3), _ROWS, _COLUMNS, None), flops=240, bytes=130),
)
def sparse(a: Args) -> Work:
    """A weight of which two of each four are kept; the product counts as a dense one."""
    x, w, out = a.tensor("x"), a.tensor("weight"), a.tensor("out")
    require(has_rank(out, 2) and size(w, 0) == size(out, 1))
    return stored_product(a, x, w, size(w, 0), size(x, -1))


# 2 * 4 * 5 * 8 of int8; x 32 of 1, the weight's 5 rows of 4 bytes, 5 + 4 scales and 5 zeros times
# scales and 4 sums of 2, out 20 of 2
@op(
    "sgl_kernel::qserve_w4a8_per_chn_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_b, Tensor scale_a, Tensor zeros, Tensor places,"
        "Tensor out"
    ),
    example=Example(
        (i8(4, 8), i8(5, 4), f16(5), f16(4), f16(5), f16(4), f16(4, 5)), flops=320, bytes=128
    ),
)
def qserve(a: Args) -> Work:
    """Activations of 8 bits times a weight of 4, two in a byte."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(size(w, 1) * 2 == size(x, -1))
    return stored_product(a, x, w, size(w, 0), size(x, -1))


# two products 2 * 4 * 5 * 6; 48 + 60 of 1 byte, two scales of 4, out 40 of 2
@op(
    "vllm::bmm_fp8",
    signature="Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, dtype out_dtype",
    example=Example((f8(2, 4, 6), f8(2, 6, 5), _ONE, _ONE, 15, "auto"), flops=480, bytes=196),
)
@op(
    "sglang::_bmm_fp8_op",
    signature="Tensor x, Tensor weight, Tensor out, Tensor scale_a, Tensor scale_b",
    example=Example((f8(2, 4, 6), f8(2, 6, 5), bf16(2, 4, 5), _ONE, _ONE), flops=480, bytes=196),
)
def batched(a: Args) -> Work:
    """A batch of products of FP8 matrices, the second as [batch, K, N]."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(size(x, -1) == size(w, -2) and size(x, -3) == size(w, -3))
    m, k, n = size(x, -2), size(x, -1), size(w, -1)
    dtype = out.dtype if (out := a.optional("out")) else a.dtype("out_dtype")
    work = product(x, w, fresh((size(x, -3), m, n), dtype or "bfloat16"), m, n, k)
    return replace(work, reads=work.reads + read_tensors(a, "scale_a", "scale_b"))


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, the weight's 32 of 1; its scales are no argument
@op(
    *("vllm::apply_bnb_4bit", "sglang::apply_bnb_4bit"),
    signature="Tensor x, Tensor weight, Tensor offsets, Tensor out",
    example=Example((_TOKENS, u8(32, 1), i64(2), f16(4, 8)), flops=512, bytes=160),
)
def bitsandbytes(a: Args) -> Work:
    """A flat weight of two numbers in a byte; its scales are kept with it, and not counted."""
    x, w, out = a.tensor("x"), a.tensor("weight"), a.tensor("out")
    require(2 * w.numel == size(x, -1) * size(out, -1))
    return stored_product(a, x, w, size(out, -1), size(x, -1))
