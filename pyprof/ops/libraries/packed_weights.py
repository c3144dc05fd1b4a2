"""Activations times a weight packed in an order of its own: GPTQ, AWQ, Marlin, GGML, bitsandbytes.

2 M N K as in `gemm`; a packed weight is read at the size of its tensor, with its scales. The number
of its outputs follows from another argument.
"""

from dataclasses import replace

from pyprof.ops.examples import Example, bf16, f8, f16, f32, i8, i16, i32, i64, u8
from pyprof.ops.libraries.weight_products import stored_product
from pyprof.ops.registry import op
from pyprof.ops.torch.linalg.gemm_low_precision import read_tensors
from pyprof.ops.work import Args, Work, has_rank, require, size

FAMILY = "gemm"

_X, _OUT, _BIAS = bf16(4, 6), bf16(4, 5), bf16(5)
_TOKENS, _SCALES = f16(4, 8), f16(1, 8)
_INT4 = i32(1, 8)  # 8 of K in an element, 8 of N
_EMPTY, _WORKSPACE = i32(0), i32(16)

_XWS = "Tensor x, Tensor weight, Tensor scale_b"
_SIZES = "int m, int n, int k"


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, zeros 1 of 4, scales 8 of 2, indices 8
# of 4
@op(
    *("_C::gptq_gemm", "sgl_kernel::gptq_gemm"),
    signature="Tensor x, Tensor weight, Tensor zeros, Tensor scale_b, Tensor? indices",
    example=Example((_TOKENS, _INT4, i32(1, 1), _SCALES, i32(8)), flops=512, bytes=212),
)
def packed_inputs(a: Args) -> Work:
    """A weight whose columns hold several of their numbers in each element."""
    return stored_product(a, size(a.tensor("weight"), 1))


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, scales 8 of 2, zeros 1 of 4
@op(
    "_C::awq_gemm",
    signature=f"{_XWS}, Tensor zeros",
    example=Example((_TOKENS, i32(8, 1), _SCALES, i32(1, 1)), flops=512, bytes=180),
)
def packed_outputs(a: Args) -> Work:
    """A weight whose rows hold several numbers in each element: N follows from the scales."""
    return stored_product(a, size(a.tensor("scale_b"), -1))


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, the weight's 8 of 4, 8 scales of 2
@op(
    "_C::machete_mm",
    signature=(
        "Tensor x, Tensor weight, int kind, dtype out_dtype, Tensor? scale_b, Tensor? zeros,"
        "int group, Tensor? channel_scales, Tensor? token_scales"
    ),
    example=Example((_TOKENS, _INT4, 4, None, _SCALES, None, 8, None, None), flops=512, bytes=176),
)
# besides the groups' scales, 8 of channels and one per token, of 4 bytes
@op(
    "_C::cutlass_w4a8_mm",
    signature=(f"{_XWS}, int group, Tensor channel_scales, Tensor token_scales, dtype out_dtype"),
    example=Example(
        (f8(4, 8), _INT4, f8(1, 8), 8, f32(1, 8), f32(4, 1), 15, None), flops=512, bytes=184
    ),
)
@op(
    "vllm::triton_w4a16_gemm",
    signature=f"{_XWS}, Tensor? zeros, int group",
    example=Example((_TOKENS, i32(8, 1), _SCALES, None, 8), flops=512, bytes=176),
)
def packed(a: Args) -> Work:
    """A weight of few bits, eight of 4 or four of 8 in an element of 32, along either dimension.

    The number of outputs follows from a column's scales.
    """
    w, k = a.tensor("weight"), size(a.tensor("x"), -1)
    n = size(w, 1)
    if size(w, 0) == k and a.op == "triton_w4a16_gemm":
        n = size(a.tensor("scale_b"), -1)
    else:
        require(size(w, 0) and not k % size(w, 0))
    work = stored_product(a, n)
    return replace(work, reads=work.reads + read_tensors(a, "channel_scales", "token_scales"))


_ORDERED = "Tensor? zeros, Tensor? indices, Tensor? order, Tensor workspace, int kind"
_WAYS = "any whole, any atomic, any reduces, any floats"
_SORTED = f"{_XWS}, Tensor zeros, Tensor indices, Tensor order"


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, scales 8 of 2
@op(
    *("_C::marlin_gemm", "_C::gptq_marlin_gemm", "sgl_kernel::gptq_marlin_gemm"),
    "_C_stable_libtorch::marlin_gemm",
    signature=(
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a,"
            f"Tensor? factor, {_ORDERED}, {_SIZES}, {_WAYS}"
        ),
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? factor,"
            f"{_ORDERED}, {_SIZES}, {_WAYS}"
        ),
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor scale_b, Tensor? factor,"
            f"{_ORDERED}, {_SIZES}, {_WAYS}"
        ),
        # weights are sorted when they are loaded: no indices, no order
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a,"
            f"Tensor? factor, Tensor? zeros, Tensor! workspace, int kind, {_SIZES}, any atomic,"
            "any reduces, any floats"
        ),
        f"{_XWS}, Tensor workspace, {_SIZES}",
        # vLLM's of early 2025
        (
            f"{_SORTED}, Tensor! workspace, int kind, {_SIZES}, any whole, any zeroed, any atomic,"
            "any reduces, any floats"
        ),
    ),
    example=Example(
        (
            *(_TOKENS, None, _INT4, None, _SCALES, None, None, None, None, None, _WORKSPACE),
            *(4, 4, 8, 8, True, False, True, False),
        ),
        flops=512,
        bytes=176,
    ),
)
@op(
    "_C::fp8_marlin_gemm",
    signature=f"{_XWS}, Tensor workspace, int kind, {_SIZES}",
    example=Example((_TOKENS, _INT4, _SCALES, _WORKSPACE, 8, 4, 8, 8), flops=512, bytes=176),
)
@op(
    "sglang::unified_apply_gptq_marlin_gemm",
    signature=f"{_SORTED}, Tensor workspace, int n, int k",
    example=Example(
        (_TOKENS, _INT4, _SCALES, *(_EMPTY,) * 3, _WORKSPACE, 8, 8), flops=512, bytes=176
    ),
)
@op(
    "sglang::unified_apply_gptq_marlin_gemm_with_wtype",
    signature=f"{_SORTED}, Tensor workspace, int kind, int n, int k",
    example=Example(
        (_TOKENS, _INT4, _SCALES, *(_EMPTY,) * 3, _WORKSPACE, 4, 8, 8), flops=512, bytes=176
    ),
)
@op(
    "sglang::apply_fp8_marlin_linear",
    signature=f"{_XWS}, Tensor workspace, int n, int k, Tensor? bias",
    example=Example((_TOKENS, _INT4, _SCALES, _WORKSPACE, 8, 8, None), flops=512, bytes=176),
)
@op(
    "vllm::marlin_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a, Tensor? factor,"
        f"Tensor? zeros, Tensor? workspace, int kind, {_SIZES}"
    ),
    example=Example(
        (_TOKENS, _INT4, None, _SCALES, None, None, None, None, 4, 4, 8, 8), flops=512, bytes=176
    ),
)
# two of four kept: the weight's 4 of 4 bytes, 8 indices of 2
@op(
    "_C::gptq_marlin_24_gemm",
    signature=(
        "Tensor x, Tensor weight, Tensor indices, Tensor scale_b, Tensor workspace, int kind,"
        f"{_SIZES}"
    ),
    example=Example(
        (_TOKENS, i32(1, 4), i16(1, 8), _SCALES, _WORKSPACE, 4, 4, 8, 8), flops=512, bytes=176
    ),
)
def marlin(a: Args) -> Work:
    """A weight in Marlin's order, whose N and K the call states."""
    n = a.integer("n", 0)
    require(n and a.integer("k", 0) == size(a.tensor("x"), -1))
    return stored_product(a, n)


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 32 of 1, scales 1 of 4
@op(
    *("bitsandbytes::gemv_4bit", "bitsandbytes::gemm_4bit"),
    signature="Tensor x, Tensor weight, int[] shape, Tensor scale_b",
    example=Example((_TOKENS, u8(32, 1), (8, 8), f32(1)), flops=512, bytes=164),
)
def blockwise_4bit(a: Args) -> Work:
    """A flat weight of two numbers in a byte, whose sizes the call states."""
    shape = a.sizes("shape")
    require(len(shape) == 2 and shape[1] == size(a.tensor("x"), -1))  # noqa: PLR2004 - a matrix
    return stored_product(a, shape[0])


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, the weight's 32 of 1
@op(
    *("vllm::apply_bnb_4bit", "sglang::apply_bnb_4bit"),
    signature="Tensor x, Tensor weight, Tensor offsets, Tensor out",
    example=Example((_TOKENS, u8(32, 1), i64(2), f16(4, 8)), flops=512, bytes=160),
)
def bitsandbytes(a: Args) -> Work:
    """The same; its scales are kept with it, are not arguments, and are not counted."""
    n = size(a.tensor("out"), -1)
    require(2 * a.tensor("weight").numel == size(a.tensor("x"), -1) * n)
    return stored_product(a, n)


# 2 * 4 * 5 * 6; packed rows of a weight of 20 bytes each, x 24 and out 20 of 2
@op(
    *("_C::ggml_mul_mat_a8", "_C::ggml_mul_mat_vec_a8", "sgl_kernel::ggml_mul_mat_a8"),
    signature="Tensor weight, Tensor x, int kind, int n",
    example=Example((u8(5, 20), _X, 2, 5), flops=240, bytes=188),
)
@op(
    "_C::allspark_w8a16_gemm",
    signature=f"{_XWS}, Tensor? zeros, int n",
    # 24 and 20 of 2 bytes, the weight's 30 of 1, 5 scales of 2
    example=Example((_X, u8(6, 5), _BIAS, None, 5), flops=240, bytes=128),
)
def stated_outputs(a: Args) -> Work:
    """Cost a product with a packed weight whose number of outputs is an argument."""
    return stored_product(a, a.integer("n", 0) or size(a.tensor("weight"), 0))


# 2 * 4 * 5 * 6 as if dense; x 24, 5 * 3 kept and 5 * 3 indices of 1 byte, 4 + 5 scales of 4, out
# 20 of 2
@op(
    "_C::cutlass_scaled_sparse_mm",
    signature=(
        "Tensor out, Tensor x, Tensor weight, Tensor indices, Tensor scale_a, Tensor scale_b,"
        "Tensor? bias"
    ),
    example=Example(
        (_OUT, f8(4, 6), f8(5, 3), u8(5, 3), f32(4, 1), f32(1, 5), None), flops=240, bytes=130
    ),
)
def sparse(a: Args) -> Work:
    """A weight with two of each four numbers kept; the product counts as a dense one."""
    n, out = size(a.tensor("weight"), 0), a.tensor("out")
    require(has_rank(out, 2) and n == size(out, 1))
    return stored_product(a, n)


# 2 * 4 * 5 * 8 of int8; x 32 of 1, the weight's 5 rows of 4 bytes, 5 + 4 scales and 5 zeros times
# scales and 4 sums of 2, out 20 of 2
@op(
    "sgl_kernel::qserve_w4a8_per_chn_gemm",
    signature=f"{_XWS}, Tensor scale_a, Tensor zeros, Tensor indices, Tensor out",
    example=Example(
        (i8(4, 8), i8(5, 4), f16(5), f16(4), f16(5), f16(4), f16(4, 5)), flops=320, bytes=128
    ),
)
def qserve(a: Args) -> Work:
    """Activations of 8 bits times a weight of 4, two in a byte."""
    w = a.tensor("weight")
    require(size(w, 1) * 2 == size(a.tensor("x"), -1))
    return stored_product(a, size(w, 0))
