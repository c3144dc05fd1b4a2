"""Matrix products of libraries: aiter, vLLM, SGLang, bitsandbytes, torchao, FlashInfer, GGML.

2 M N K as in `gemm`. A weight lies as [N, K], or as [K, N] where the library says so; packed ones
(two numbers of 4 bits in a byte, eight in an int32) are read at the size of their tensors, with
their scales. Multiplications by scales are not counted.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f16, f32, i8, i32, u8, u32
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.linalg.gemm import gradients, product
from pyprof.ops.torch.linalg.gemm_low_precision import read_tensors
from pyprof.ops.work import Args, Work, fresh, has_rank, require, size

FAMILY = "gemm"

_X, _W = bf16(4, 6), bf16(5, 6)
_OUT, _BIAS = bf16(4, 5), bf16(5)
_X8, _W8 = f8(4, 6), f8(5, 6)
_K8 = f8(6, 5)
_X_INT8, _W_INT8 = i8(4, 6), i8(5, 6)
_ROWS, _COLUMNS = f32(4, 1), f32(1, 5)
_ONE = f32(1)
_X4, _W4 = u8(4, 32), u8(5, 32)
_S4, _V4 = u8(4, 2), u8(5, 2)

_EXTRAS = ("bias", "scale_a", "scale_b", "zeros", "places")
_HALF = frozenset({"float4_e2m1fn_x2", "uint8"})
"""Types of which an element holds two numbers of 4 bits, where a product's both factors do."""


def _narrow(dtype: str | None) -> bool:
    return dtype is not None and (dtype.startswith(("float8", "float4")) or "int8" in dtype)


def out_dtype(a: Args, first: Tensor) -> str | None:
    """Give the result's type: that of `out`, the one asked for, or that of unpacked activations."""
    if (out := a.optional("out")) is not None:
        return out.dtype
    if a.given("out_dtype") and a.known("out_dtype"):
        return a.dtype("out_dtype")
    return "bfloat16" if _narrow(first.dtype) else first.dtype


def weight_product(a: Args, *, inner_first: bool | None, packed: int = 1) -> Work:
    """Give the work of x [.., K] and a weight; `inner_first` says that it lies as [K, N].

    None: either, as its sizes tell. `packed` is how many numbers an element of both holds.
    """
    x, w = a.tensor("x"), a.tensor("weight")
    require(has_rank(w, 2) and x.shape)
    k = x.shape[-1]
    if inner_first is None:
        inner_first = w.shape[1] != k
    n = w.shape[1] if inner_first else w.shape[0]
    require((w.shape[0] if inner_first else w.shape[1]) == k)
    return stored_product(a, x, w, n, k * packed)


def stored_product(a: Args, x: Tensor, w: Tensor, n: int, k: int) -> Work:
    """Give the work of all rows of x and a weight of N outputs, whatever it is stored as."""
    rows = x.numel // max(1, size(x, -1))
    out = fresh((*x.shape[:-1], n), out_dtype(a, x))
    work = product(x, w, out, rows, n, k)
    return replace(work, reads=work.reads + read_tensors(a, *_EXTRAS))


# 2 * 4 * 5 * 6 = 240; 24 + 30 + out 20 of 2 bytes
@op(
    *("aiter::gemm_a16w16", "sglang_profiler::gemm_kernels_flydsl_hgemm"),
    signature="Tensor x, Tensor weight, Tensor? bias, dtype out_dtype",
    example=Example((_X, _W, None, 15), flops=240, bytes=148),
)
@op(
    "aiter::gemm_a16w16_atomic_",
    signature="Tensor x, Tensor weight, dtype out_dtype, Tensor? out",
    example=Example((_X, _W, 15, _OUT, None), flops=240, bytes=148),
)
@op(
    *("aiter::gemm_a16w16_asm", "aiter::_gemm_a16w16_asm"),
    signature=(
        "Tensor x, Tensor weight, Tensor out, Tensor? bias, any split, any kernel",
        # parts of K, summed up under a lock
        (
            "Tensor x, Tensor weight, Tensor out, any lock, Tensor? bias, any split, any kernel,"
            "any shuffled"
        ),
        (
            "Tensor x, Tensor weight, Tensor out, any lock, any workspace, Tensor? bias, any split,"
            "any kernel, any shuffled"
        ),
    ),
    # and the bias's 5
    example=Example(
        (_X, _W, _OUT, u32(16, 64), _BIAS, None, "", False),
        flops=240,
        bytes=158,
        op="_gemm_a16w16_asm",
    ),
)
@op(
    *("vllm::rocm_unquantized_gemm", "vllm::rocm_unquantized_gemm_impl"),
    *("vllm::cpu_unquantized_gemm", "vllm::default_unquantized_gemm"),
    "sgl_kernel::weight_packed_linear",
    signature="Tensor x, Tensor weight, Tensor? bias",
    # and the bias's 5
    example=Example((_X, _W, _BIAS), flops=240, bytes=158),
)
@op(
    *("_C::wvSplitK", "_C::LLMM1", "_rocm_C::wvSplitK", "_rocm_C::LLMM1"),
    signature="Tensor weight, Tensor x",
    example=Example((_W, _X), flops=240, bytes=148, mod="_rocm_C"),
)
def weight_by_rows(a: Args) -> Work:
    """Activations times a weight of N rows."""
    return weight_product(a, inner_first=False)


# 2 * 4 * 5 * 6; 24 + 30 of 1 byte, out 20 of 4
@op(
    "bitsandbytes::int8_linear_matmul",
    signature="Tensor x, Tensor weight, Tensor? out",
    example=Example((_X_INT8, _W_INT8), flops=240, bytes=134),
)
def int8_by_rows(a: Args) -> Work:
    """Int8 activations times a weight of N rows, summed up in int32."""
    work = weight_product(a, inner_first=False)
    return replace(work, writes=tuple(fresh(t.shape, "int32") for t in work.writes))


# 2 * 4 * 5 * 6; 24 + 30 + out 20 of 2 bytes: either order of the weight, as the sizes tell
@op(
    *("_C::dsv3_fused_a_gemm", "sgl_kernel::dsv3_fused_a_gemm", "sgl_kernel::dsv3_router_gemm"),
    "_moe_C::dsv3_router_gemm",
    signature="Tensor out, Tensor x, Tensor weight",
    example=Example((_OUT, _X, _W), flops=240, bytes=148, op="dsv3_router_gemm", mod="sgl_kernel"),
)
def weight_by_either(a: Args) -> Work:
    """Products of one model's layers, given their result."""
    return weight_product(a, inner_first=None)


# 2 * 4 * 5 * 6; 24 + 30 of 1 byte, 4 + 5 scales of 4, out 20 of 2
@op(
    *("_C::cutlass_scaled_mm", "_C_stable_libtorch::cutlass_scaled_mm"),
    signature="Tensor out, Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor? bias",
    example=Example((_OUT, _X8, _K8, _ROWS, _COLUMNS, None), flops=240, bytes=130),
)
@op(
    *("_C::cutlass_scaled_mm_azp", "_C_stable_libtorch::cutlass_scaled_mm_azp"),
    signature=(
        "Tensor out, Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor zeros,"
        "Tensor? places, Tensor? bias"
    ),
    # and 5 of 4 bytes that correct for zero points
    example=Example((_OUT, _X8, _K8, _ROWS, _COLUMNS, i32(5), None, None), flops=240, bytes=150),
)
@op(
    *("sgl_kernel::fp8_scaled_mm", "sgl_kernel::int8_scaled_mm"),
    "sgl_kernel::fp8_blockwise_scaled_mm",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, dtype out_dtype, Tensor? bias"
    ),
    example=Example((_X8, _K8, _ROWS, _COLUMNS, 15, None), flops=240, bytes=130),
)
@op(
    "trtllm::cublas_scaled_mm",
    signature=(
        "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor? bias, dtype out_dtype"
    ),
    example=Example((_X8, _K8, _ROWS, _COLUMNS, None, 15), flops=240, bytes=130),
)
@op(
    *("torchao::mx_fp8_bf16", "torchao::scaled_int8_mm"),
    signature="Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b",
    example=Example((_X8, _K8, _ROWS, _COLUMNS), flops=240, bytes=130),
)
@op(
    "aiter::hipb_mm",
    signature=(
        "Tensor x, Tensor weight, any solution, Tensor? bias, dtype out_dtype, Tensor? scale_a,"
        "Tensor? scale_b"
    ),
    # 24 + 30 + out 20 and the bias's 5 of 2 bytes
    example=Example(
        (_X, bf16(6, 5), -1, _BIAS, None, None, None, None, False), flops=240, bytes=158
    ),
)
def scaled(a: Args) -> Work:
    """A product, of FP8 or int8 matrices with their scales; the weight lies as [K, N]."""
    return weight_product(a, inner_first=True)


_A8W8 = "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b"


# 2 * 4 * 5 * 6; 24 + 30 of 1 byte, 4 + 5 scales of 4, out 20 of 2
@op(
    *("aiter::gemm_a8w8", "aiter::gemm_a8w8_bpreshuffle", "vllm::rocm_aiter_gemm_w8a8"),
    signature=f"{_A8W8}, Tensor? bias, dtype out_dtype",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, None, 15), flops=240, bytes=130),
)
@op(
    *("aiter::gemm_a8w8_ck", "aiter::gemm_a8w8_bpreshuffle_ck", "aiter::gemm_a8w8_blockscale_ck"),
    *("aiter::gemm_a8w8_bpreshuffle_cktile", "aiter::gemm_a8w8_blockscale_cktile"),
    *("aiter::gemm_a8w8_blockscale_bpreshuffle_ck", "aiter::flatmm_a8w8_blockscale_asm"),
    *("aiter::gfx950_a8w8_blockscale_asm", "aiter::mi350_a8w8_blockscale_asm"),
    "aiter::_flatmm_a8w8_blockscale_asm",
    *("aiter::gemm_a8w8_blockscale_bpreshuffle_cktile", "aiter::gemm_a8w8_asm"),
    signature=f"{_A8W8}, Tensor out",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, _OUT), flops=240, bytes=130),
)
@op(
    *("aiter::gemm_a8w8_blockscale", "aiter::gemm_a8w8_blockscale_bpreshuffle"),
    *("vllm::rocm_aiter_gemm_w8a8_blockscale", "vllm::rocm_aiter_triton_gemm_a8w8_blockscale"),
    "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm",
    "sglang_profiler::fp8_utils_gemm_a8w8_blockscale",
    "sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale",
    signature=(f"{_A8W8}, dtype out_dtype", f"{_A8W8}, Tensor? bias, dtype out_dtype"),
    example=Example((_X8, _W8, _ROWS, _COLUMNS, 15), flops=240, bytes=130),
)
@op(
    *("vllm::w8a8_triton_block_scaled_mm_func", "vllm::w8a8_block_fp8_matmul_func"),
    *("sglang::w8a8_block_fp8_matmul_triton", "sglang::w8a8_block_fp8_matmul_deepgemm"),
    signature=f"{_A8W8}, int[] block, dtype out_dtype",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, (128, 128), 15), flops=240, bytes=130),
)
@op(
    *(
        "aiter::gemm_a8w8_blockscale_bpreshuffle_asm",
        "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm",
    ),
    signature="Tensor x, Tensor weight, Tensor out, Tensor scale_a, Tensor scale_b, Tensor? bias",
    example=Example((_X8, _W8, _OUT, _ROWS, _COLUMNS), flops=240, bytes=130),
)
@op(
    "bitsandbytes::int8_scaled_mm",
    signature=f"{_A8W8}, Tensor? bias, dtype out_dtype",
    # as above, of int8
    example=Example((_X_INT8, _W_INT8, _ROWS, _COLUMNS, None, 5), flops=240, bytes=130),
)
@op(
    *("vllm::fp8_gemm_nt_op", "sglang::deep_gemm_fp8_fp8_bf16_nt", "deep_gemm::fp8_gemm_nt"),
    signature="Tensor x, Tensor scale_a, Tensor weight, Tensor scale_b, Tensor out",
    example=Example(
        (_X8, _ROWS, _W8, _COLUMNS, _OUT),
        flops=240,
        bytes=130,
        op="deep_gemm_fp8_fp8_bf16_nt",
        mod="sglang",
    ),
)
def scaled_by_rows(a: Args) -> Work:
    """A product of FP8 or int8 matrices with their scales; the weight lies as [N, K]."""
    return weight_product(a, inner_first=False)


# 64 numbers in 32 bytes: 2 * 4 * 5 * 64 = 2560; 128 + 160 of 1 byte, 8 + 10 scales of 1, a factor
# of 4, out 20 of 2
@op(
    *("_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"),
    "_C_stable_libtorch::cutlass_scaled_fp4_mm",
    signature="Tensor out, Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, Tensor zeros",
    example=Example((_OUT, _X4, _W4, _S4, _V4, _ONE), flops=2560, bytes=350),
)
# without the factor
@op(
    *("aiter::gemm_a4w4_blockscale", "aiter::gemm_a4w4_asm", "aiter::_gemm_a4w4_asm"),
    signature=f"{_A8W8}, Tensor out",
    example=Example((_X4, _W4, _S4, _V4, _OUT), flops=2560, bytes=346),
)
@op(
    "aiter::gemm_afp4wfp4_",
    signature=f"{_A8W8}, dtype out_dtype, Tensor? out",
    example=Example((_X4, _W4, _S4, _V4, 15, _OUT, None, False), flops=2560, bytes=346),
)
@op(
    "torchao::mx_fp4_bf16",
    signature="Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b",
    # the weight as [K, N]
    example=Example((_X4, u8(32, 5), _S4, _V4), flops=2560, bytes=346),
)
def scaled_fp4(a: Args) -> Work:
    """A product of FP4 matrices, two numbers in a byte, and their scales."""
    packed = 2 if a.tensor("x").dtype in _HALF else 1
    return weight_product(a, inner_first=None, packed=packed)


# as above; and 5 of a bias of 2 bytes
@op(
    "aiter::gemm_a4w4",
    signature=f"{_A8W8}, Tensor? bias, dtype out_dtype",
    example=Example((_X4, _W4, _S4, _V4, _BIAS, 15, 1.0, 0.0, True), flops=2560, bytes=356),
)
def scaled_fp4_new(a: Args) -> Work:
    """A product of FP4 matrices; older versions are given the result before the bias."""
    following = a.values.get("out_dtype")
    if a.optional("bias") is not None and (following is None or isinstance(following, Tensor)):
        return scaled_fp4(a.replaced(out=a.tensor("bias"), bias=following))
    return scaled_fp4(a)


_INT4 = i32(1, 8)  # 8 of K in an element, 8 of N
_HALVES = f16(1, 8)
_TOKENS = f16(4, 8)


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, zeros 1 of 4, scales 8 of 2, places 8
# of 4
@op(
    *("_C::gptq_gemm", "sgl_kernel::gptq_gemm"),
    signature="Tensor x, Tensor weight, Tensor zeros, Tensor scale_b, Tensor? places",
    example=Example((_TOKENS, _INT4, i32(1, 1), _HALVES, i32(8)), flops=512, bytes=212),
)
def packed_inputs(a: Args) -> Work:
    """A weight whose columns hold several of their numbers in each element."""
    x, w = a.tensor("x"), a.tensor("weight")
    return stored_product(a, x, w, size(w, 1), size(x, -1))


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, scales 8 of 2, zeros 1 of 4
@op(
    "_C::awq_gemm",
    signature="Tensor x, Tensor weight, Tensor scale_b, Tensor zeros",
    example=Example((_TOKENS, i32(8, 1), _HALVES, i32(1, 1)), flops=512, bytes=180),
)
def packed_outputs(a: Args) -> Work:
    """A weight whose rows hold several of their numbers in each element: the scales tell N."""
    x, w = a.tensor("x"), a.tensor("weight")
    return stored_product(a, x, w, size(a.tensor("scale_b"), -1), size(x, -1))


_SIZES = "int m, int n, int k"


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 8 of 4, scales 8 of 2
@op(
    *("_C::marlin_gemm", "_C::gptq_marlin_gemm", "sgl_kernel::gptq_marlin_gemm"),
    "_C_stable_libtorch::marlin_gemm",
    signature=(
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a,"
            f"Tensor? factor, Tensor? zeros, Tensor? places, Tensor? order, Tensor workspace,"
            f"int kind, {_SIZES}, any whole, any atomic, any reduces, any floats"
        ),
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b,"
            f"Tensor? factor, Tensor? zeros, Tensor? places, Tensor? order, Tensor workspace,"
            f"int kind, {_SIZES}, any whole, any atomic, any reduces, any floats"
        ),
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor scale_b,"
            f"Tensor? factor, Tensor? zeros, Tensor? places, Tensor? order, Tensor workspace,"
            f"int kind, {_SIZES}, any whole, any atomic, any reduces, any floats"
        ),
        # weights are sorted when they are loaded: no places, no order
        (
            "Tensor x, Tensor? out, Tensor weight, Tensor? bias, Tensor scale_b, Tensor? scale_a,"
            f"Tensor? factor, Tensor? zeros, Tensor! workspace, int kind, {_SIZES}, any atomic,"
            "any reduces, any floats"
        ),
        f"Tensor x, Tensor weight, Tensor scale_b, Tensor workspace, {_SIZES}",
        # vLLM's of early 2025
        (
            "Tensor x, Tensor weight, Tensor scale_b, Tensor zeros, Tensor places, Tensor order,"
            f"Tensor! workspace, int kind, {_SIZES}, any whole, any zeroed, any atomic,"
            "any reduces, any floats"
        ),
    ),
    example=Example(
        (
            *(_TOKENS, None, _INT4, None, _HALVES, None, None, None, None, None, i32(16), 4, 4),
            *(8, 8, True, False, True, False),
        ),
        flops=512,
        bytes=176,
    ),
)
def marlin(a: Args) -> Work:
    """A weight in an order of its own."""
    return product_of_stated_sizes(a)


def product_of_stated_sizes(a: Args) -> Work:
    """Give the work of a product whose call states N and K, which the stored weight hides."""
    x, w, n, k = a.tensor("x"), a.tensor("weight"), a.integer("n", 0), a.integer("k", 0)
    require(n and k == size(x, -1))
    return stored_product(a, x, w, n, k)


# 2 * 4 * 8 * 8; x 32 and out 32 of 2 bytes, weight 32 of 1, scales 1 of 4
@op(
    *("bitsandbytes::gemm_4bit", "bitsandbytes::gemv_4bit"),
    signature="Tensor x, Tensor weight, int[] shape, Tensor scale_b",
    example=Example((_TOKENS, u8(32, 1), (8, 8), _ONE), flops=512, bytes=164, op="gemv_4bit"),
)
def blockwise_4bit(a: Args) -> Work:
    """A flat weight of two numbers in a byte, whose sizes the call states."""
    x, w, shape = a.tensor("x"), a.tensor("weight"), a.sizes("shape")
    require(len(shape) == 2 and shape[1] == size(x, -1))  # noqa: PLR2004 - a matrix
    return stored_product(a, x, w, *shape)


# 2 * 4 * 5 * 6; packed rows of a weight of 20 bytes each, x 24 and out 20 of 2
@op(
    *("_C::ggml_mul_mat_a8", "_C::ggml_mul_mat_vec_a8", "sgl_kernel::ggml_mul_mat_a8"),
    signature="Tensor weight, Tensor x, int kind, int n",
    example=Example((u8(5, 20), _X, 2, 5), flops=240, bytes=188),
)
@op(
    "_C::allspark_w8a16_gemm",
    signature="Tensor x, Tensor weight, Tensor scale_b, Tensor? zeros, int n",
    # 24 and 20 of 2 bytes, the weight's 30 of 1, 5 scales of 2
    example=Example((_X, u8(6, 5), _BIAS, None, 5), flops=240, bytes=128),
)
def stated_outputs(a: Args) -> Work:
    """A packed weight of which the call states how many outputs it has."""
    x, w = a.tensor("x"), a.tensor("weight")
    return stored_product(a, x, w, a.integer("n", 0) or size(w, 0), size(x, -1))


# two products 2 * 4 * 5 * 6; 48 + 60 of 1 byte, two scales of 4, out 40 of 2
@op(
    *("flashinfer::bmm_fp8", "sgl_kernel::bmm_fp8"),
    signature=(
        "Tensor x, Tensor weight, Tensor out, Tensor scale_a, Tensor scale_b",
        "Tensor x, Tensor weight, Tensor scale_a, Tensor scale_b, dtype out_dtype, Tensor? out",
    ),
    example=Example(
        (f8(2, 4, 6), f8(2, 6, 5), bf16(2, 4, 5), _ONE, _ONE),
        flops=480,
        bytes=196,
        mod="sgl_kernel",
    ),
)
def batched(a: Args) -> Work:
    """A batch of products of FP8 matrices, the second as [batch, K, N]."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(size(x, -1) == size(w, -2) and size(x, -3) == size(w, -3))
    m, k, n = size(x, -2), size(x, -1), size(w, -1)
    out = fresh((size(x, -3), m, n), out_dtype(a, x))
    work = product(x, w, out, m, n, k)
    return replace(work, reads=work.reads + read_tensors(a, "scale_a", "scale_b"))


# 2 * 4 * 5 * 6; 24 + 30 + 5 + out 20 of 2 bytes
@op(
    "_Linear",
    signature=("Tensor weight, Tensor x, Tensor? bias", "Tensor weight, any kept, Tensor x"),
    example=Example((_W, _X, _BIAS), flops=240, bytes=158, mod=""),
)
def te_linear(a: Args) -> Work:
    """TransformerEngine's linear layer, whose weight is given first; casts to FP8 come on top."""
    return weight_product(a, inner_first=False)


# the product alone: 240; 24 + 6 + 30 + out 20 of 2 bytes
@op(
    "_LayerNormLinear",
    signature="Tensor x, Tensor norm, Tensor? shift, Tensor weight, Tensor? bias",
    example=Example((_X, bf16(6), None, _W, None), flops=240, bytes=160, mod=""),
)
def te_norm_linear(a: Args) -> Work:
    """TransformerEngine's norm and linear layer in one; the norm's FLOPs are not counted."""
    work = weight_product(a, inner_first=False)
    return replace(work, reads=work.reads + a.present("norm", "shift"))


# both gradients, 240 each; go 20 + w 30 + dx 24, go 20 + x 24 + dw 30 of 2 bytes
@op("_Linear", direction=BPROP, flops=480, bytes=296)
@op("_LayerNormLinear", direction=BPROP, flops=480, bytes=296)
def te_linear_backward(a: Args) -> Work:
    """The gradients of activations and weight; those of bias and norm are not counted."""
    return gradients(weight_product(a, inner_first=False), a.gemm_kernels)


_GROUPS = bf16(2, 5, 6)


# 4 rows, each times one of two matrices: 2 * 4 * 5 * 6; 24, 60 and 20 of 2 bytes
@op(
    *("primus_turbo::grouped_gemm", "primus_turbo::grouped_gemm_impl"),
    *("primus_turbo_cpp_extension::grouped_gemm", "primus_turbo_cpp_extension::ck_grouped_gemm"),
    signature="Tensor x, Tensor weight",
    example=Example(
        (_X, _GROUPS, _ONE, _ONE, False, True), flops=240, bytes=208, op="grouped_gemm_impl"
    ),
)
def grouped(a: Args) -> Work:
    """Each row times the matrix of its group, [groups, N, K] or [groups, K, N]."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(has_rank(x, 2) and has_rank(w, 3) and x.shape[1] in w.shape[1:])
    rows, k = x.shape
    n = w.shape[1] * w.shape[2] // max(1, k)
    return product(x, w, fresh((rows, n), x.dtype), rows, n, k)
