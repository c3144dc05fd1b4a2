"""Activations times a weight, scaled or not: aiter, vLLM, SGLang, torchao, FlashInfer, TE.

2 M N K as in `gemm`. A weight is [N, K] or [K, N], which follows from its sizes. A uint8 or float4
element holds two numbers of 4 bits. Scales are read, multiplying by them is not counted; neither is
what an op rounds before it multiplies.
"""

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f32, i8, i32, u8, u32
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.linalg.gemm import gradients_of, product
from pyprof.ops.torch.linalg.gemm_low_precision import read_tensors
from pyprof.ops.work import Args, Work, fresh, has_rank, require, size

FAMILY = "gemm"

_X, _W, _OUT, _BIAS = bf16(4, 6), bf16(5, 6), bf16(4, 5), bf16(5)
_X8, _W8, _K8 = f8(4, 6), f8(5, 6), f8(6, 5)
_X_INT8, _W_INT8 = i8(4, 6), i8(5, 6)
_ROWS, _COLUMNS, _ONE = f32(4, 1), f32(1, 5), f32(1)
_X4, _W4, _T4, _S4, _V4 = u8(4, 32), u8(5, 32), u8(32, 5), u8(4, 2), u8(5, 2)
_S8, _V8 = f8(4, 4), f8(5, 4)

_EXTRAS = ("bias", "scale_a", "scale_b", "zeros", "indices")
_RESULTS = {"router_gemm_bf16_fp32": "float32", "int8_linear_matmul": "int32"}
"""Result dtypes of ops that take neither a dtype nor an output tensor."""


def numbers_per_element(tensor: Tensor) -> int:
    """Return how many numbers an element of the tensor holds."""
    return 2 if tensor.dtype in ("uint8", "float4_e2m1fn_x2") else 1


def _out_dtype(a: Args, first: Tensor) -> str | None:
    """Return the dtype of `out`, else the requested one, else that of unpacked activations."""
    if a.op in _RESULTS:
        return _RESULTS[a.op]
    if (out := a.optional("out")) is not None:
        return out.dtype
    if a.given("out_dtype") and a.known("out_dtype"):
        return a.dtype("out_dtype")
    dtype = first.dtype
    narrow = dtype is not None and (dtype.startswith(("float8", "float4")) or "int8" in dtype)
    return "bfloat16" if narrow else dtype


def stored_product(a: Args, n: int, k: int | None = None) -> Work:
    """Return the work of all rows of `x` times a weight of N outputs, however it is stored.

    K is the last dimension of `x` unless it is given.
    """
    x = a.tensor("x")
    width = size(x, -1)
    rows = x.numel // max(1, width)
    out = fresh((*x.shape[:-1], n), _out_dtype(a, x))
    work = product(x, a.tensor("weight"), out, rows, n, width if k is None else k)
    return replace(work, reads=work.reads + read_tensors(a, *_EXTRAS))


_XW = "Tensor x, Tensor weight"
_SCALED = f"{_XW}, Tensor scale_a, Tensor scale_b"


# 2 * 4 * 5 * 6 = 240; 24 + 30 + out 20 of 2 bytes
@op(
    *("aiter::gemm_a16w16", "sglang_profiler::gemm_kernels_flydsl_hgemm"),
    signature=f"{_XW}, Tensor? bias, dtype out_dtype",
    example=Example((_X, _W, None, 15), flops=240, bytes=148),
)
@op(
    "aiter::gemm_a16w16_atomic_",
    signature=f"{_XW}, dtype out_dtype, Tensor? out",
    example=Example((_X, _W, 15, _OUT, None), flops=240, bytes=148),
)
@op(
    *("aiter::_gemm_a16w16_asm", "aiter::gemm_a16w16_asm"),
    signature=(
        f"{_XW}, Tensor out, Tensor? bias, any split, any kernel",
        # parts of K, summed up under a lock
        f"{_XW}, Tensor out, any lock, Tensor? bias, any split, any kernel, any shuffled",
        (
            f"{_XW}, Tensor out, any lock, any workspace, Tensor? bias, any split, any kernel,"
            "any shuffled"
        ),
    ),
    # and the bias's 5
    example=Example((_X, _W, _OUT, u32(16, 64), _BIAS, None, "", False), flops=240, bytes=158),
)
@op(
    *("vllm::rocm_unquantized_gemm", "vllm::rocm_unquantized_gemm_impl"),
    *("vllm::cpu_unquantized_gemm", "vllm::default_unquantized_gemm"),
    *("sgl_kernel::weight_packed_linear", "vllm::min_latency_fused_qkv_a_proj"),
    signature=f"{_XW}, Tensor? bias",
    example=Example((_X, _W, _BIAS), flops=240, bytes=158),
)
@op(
    *("_rocm_C::wvSplitK", "_C::wvSplitK", "_C::LLMM1", "_rocm_C::LLMM1"),
    signature="Tensor weight, Tensor x",
    example=Example((_W, _X), flops=240, bytes=148),
)
@op(
    *("sgl_kernel::dsv3_router_gemm", "_C::dsv3_fused_a_gemm", "sgl_kernel::dsv3_fused_a_gemm"),
    *("_moe_C::dsv3_router_gemm", "_C::fp32_router_gemm", "sglang::flashinfer_dsv3_router_gemm"),
    signature=f"Tensor out, {_XW}",
    example=Example((_OUT, _X, _W), flops=240, bytes=148),
)
# the result of 4 bytes
@op("_moe_C::router_gemm_bf16_fp32", signature=_XW, example=Example((_X, _W), flops=240, bytes=188))
# TransformerEngine's linear layer, whose casts to FP8 come on top: the bias's 5
@op(
    "_Linear",
    signature=("Tensor weight, Tensor x, Tensor? bias", "Tensor weight, any kept, Tensor x"),
    example=Example((_W, _X, _BIAS), flops=240, bytes=158, mod=""),
)
# 24 + 30 of 1 byte, out 20 of 4
@op(
    "bitsandbytes::int8_linear_matmul",
    signature=f"{_XW}, Tensor? out",
    example=Example((_X_INT8, _W_INT8), flops=240, bytes=134),
)
# 24 + 30 of 1 byte, 4 + 5 scales of 4, out 20 of 2
@op(
    *("_C::cutlass_scaled_mm", "_C_stable_libtorch::cutlass_scaled_mm"),
    signature=f"Tensor out, {_SCALED}, Tensor? bias",
    example=Example((_OUT, _X8, _K8, _ROWS, _COLUMNS, None), flops=240, bytes=130),
)
@op(
    *("_C::cutlass_scaled_mm_azp", "_C_stable_libtorch::cutlass_scaled_mm_azp"),
    signature=f"Tensor out, {_SCALED}, Tensor zeros, Tensor? indices, Tensor? bias",
    # and 5 of 4 bytes that correct for zero points
    example=Example((_OUT, _X8, _K8, _ROWS, _COLUMNS, i32(5), None, None), flops=240, bytes=150),
)
@op(
    *("sgl_kernel::fp8_scaled_mm", "sgl_kernel::int8_scaled_mm"),
    "sgl_kernel::fp8_blockwise_scaled_mm",
    signature=f"{_SCALED}, dtype out_dtype, Tensor? bias",
    example=Example((_X8, _K8, _ROWS, _COLUMNS, 15, None), flops=240, bytes=130),
)
@op(
    *("aiter::gemm_a8w8", "aiter::gemm_a8w8_bpreshuffle", "vllm::rocm_aiter_gemm_w8a8"),
    *("vllm::rocm_aiter_gemm_a8w8", "vllm::rocm_aiter_w8a8_gemm", "trtllm::cublas_scaled_mm"),
    "bitsandbytes::int8_scaled_mm",
    signature=f"{_SCALED}, Tensor? bias, dtype out_dtype",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, None, 15), flops=240, bytes=130),
)
@op(
    *("torchao::mx_fp8_bf16", "torchao::scaled_int8_mm"),
    signature=_SCALED,
    example=Example((_X8, _K8, _ROWS, _COLUMNS), flops=240, bytes=130),
)
@op(
    "aiter::hipb_mm",
    signature=(
        f"{_XW}, any solution, Tensor? bias, dtype out_dtype, Tensor? scale_a, Tensor? scale_b"
    ),
    # 24 + 30 + out 20 and the bias's 5 of 2 bytes
    example=Example(
        (_X, bf16(6, 5), -1, _BIAS, None, None, None, None, False), flops=240, bytes=158
    ),
)
@op(
    *("aiter::gemm_a8w8_ck", "aiter::gemm_a8w8_bpreshuffle_ck", "aiter::gemm_a8w8_blockscale_ck"),
    *("aiter::gemm_a8w8_bpreshuffle_cktile", "aiter::gemm_a8w8_blockscale_cktile"),
    *("aiter::gemm_a8w8_blockscale_bpreshuffle_ck", "aiter::flatmm_a8w8_blockscale_asm"),
    *("aiter::gfx950_a8w8_blockscale_asm", "aiter::mi350_a8w8_blockscale_asm"),
    *("aiter::_flatmm_a8w8_blockscale_asm", "aiter::gemm_a8w8_asm"),
    "aiter::gemm_a8w8_blockscale_bpreshuffle_cktile",
    signature=f"{_SCALED}, Tensor out",
    example=Example((_X8, _W8, _ROWS, _COLUMNS, _OUT), flops=240, bytes=130),
)
@op(
    *("aiter::gemm_a8w8_blockscale", "aiter::gemm_a8w8_blockscale_bpreshuffle"),
    *("vllm::rocm_aiter_gemm_w8a8_blockscale", "vllm::rocm_aiter_triton_gemm_a8w8_blockscale"),
    "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm",
    "sglang_profiler::fp8_utils_gemm_a8w8_blockscale",
    "sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale",
    *("sglang::flashinfer_gemm_fp8_nt_groupwise", "vllm::rocm_aiter_gemm_a8w8_blockscale"),
    "vllm::rocm_aiter_gemm_a8w8_blockscale_bpreshuffle",
    *("vllm::rocm_aiter_triton_gemm_a8w8_blockscale_preshuffle", "sglang::flashinfer_mm_mxfp8"),
    signature=(f"{_SCALED}, dtype out_dtype", f"{_SCALED}, Tensor? bias, dtype out_dtype"),
    example=Example((_X8, _W8, _ROWS, _COLUMNS, 15), flops=240, bytes=130),
)
@op(
    "vllm::mm_mxfp8",
    signature=f"{_SCALED}, dtype out_dtype",
    example=Example((_X8, _K8, _ROWS, _COLUMNS, 15, "cutlass"), flops=240, bytes=130),
)
@op(
    *("vllm::w8a8_triton_block_scaled_mm_func", "vllm::w8a8_block_fp8_matmul_func"),
    *("sglang::w8a8_block_fp8_matmul_triton", "sglang::w8a8_block_fp8_matmul_deepgemm"),
    *("vllm::padded_cutlass", "vllm::int8_scaled_mm_func"),
    signature=(
        f"{_SCALED}, int[] block, dtype out_dtype",
        f"{_SCALED}, dtype out_dtype, Tensor? bias",
    ),
    example=Example((_X8, _W8, _ROWS, _COLUMNS, (128, 128), 15), flops=240, bytes=130),
)
@op(
    "aiter::gemm_a8w8_blockscale_bpreshuffle_asm",
    "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm",
    signature=f"{_XW}, Tensor out, Tensor scale_a, Tensor scale_b, Tensor? bias",
    example=Example((_X8, _W8, _OUT, _ROWS, _COLUMNS), flops=240, bytes=130),
)
@op(
    *("sglang::deep_gemm_fp8_fp8_bf16_nt", "vllm::fp8_gemm_nt_op", "deep_gemm::fp8_gemm_nt"),
    signature="Tensor x, Tensor scale_a, Tensor weight, Tensor scale_b, Tensor out",
    example=Example((_X8, _ROWS, _W8, _COLUMNS, _OUT), flops=240, bytes=130),
)
@op(
    "sglang::triton_mxfp8_block_scaled_matmul",
    signature="Tensor x, Tensor scale_a, Tensor weight, Tensor scale_b, dtype out_dtype",
    example=Example((_X8, _ROWS, _W8, _COLUMNS, 15), flops=240, bytes=130),
)
@op(
    "vllm::rocm_per_tensor_w8a8_scaled_mm_impl",
    "vllm::rocm_per_tensor_float_w8a8_scaled_mm_impl",
    signature=f"{_XW}, dtype out_dtype, Tensor scale_a, Tensor scale_b, Tensor? bias",
    example=Example((_X8, _K8, 15, _ROWS, _COLUMNS, None), flops=240, bytes=130),
)
# activations of 16 bits, rounded inside: 24 and out 20 of 2 bytes, 30 of 1, 5 scales of 4
@op(
    *("vllm::flashinfer_fp8_blockscale_gemm", "vllm::dynamic_flashinfer_deepgemm_blockscale_gemm"),
    *("vllm::gemm_with_dynamic_quant", "sglang::triton_mxfp8_blockscaled_linear"),
    signature=f"{_XW}, Tensor scale_b",
    example=Example((_X, _W8, _COLUMNS), flops=240, bytes=138),
)
@op(
    "vllm::apply_w8a8_block_fp8_linear",
    signature=f"{_XW}, int[] block, Tensor scale_b, Tensor? scale_a, Tensor? bias",
    example=Example((_X, _W8, (128, 128), _COLUMNS, None, None), flops=240, bytes=138),
)
# 64 numbers in 32 bytes: 2 * 4 * 5 * 64 = 2560; 128 + 160 of 1 byte, 8 + 10 scales of 1, a factor
# of 4, out 20 of 2
@op(
    *("_C::cutlass_scaled_fp4_mm", "sgl_kernel::cutlass_scaled_fp4_mm"),
    "_C_stable_libtorch::cutlass_scaled_fp4_mm",
    signature=f"Tensor out, {_SCALED}, Tensor zeros",
    example=Example((_OUT, _X4, _W4, _S4, _V4, _ONE), flops=2560, bytes=350),
)
# 16 + 20 scales
@op(
    *("vllm::flashinfer_mm_fp4", "sglang::fp4_gemm"),
    signature=f"{_SCALED}, Tensor zeros, dtype out_dtype",
    example=Example((_X4, _T4, _S8, _V8, _ONE, 15, "cutlass"), flops=2560, bytes=368),
)
@op(
    *("vllm::matmul_nvf4_bf16", "vllm::matmul_mxf4_bf16"),
    signature=f"{_SCALED}, Tensor zeros",
    example=Example((_X4, _W4, _S8, _V8, _ONE), flops=2560, bytes=368),
)
# without the factor
@op(
    *("aiter::gemm_a4w4_blockscale", "aiter::gemm_a4w4_asm", "aiter::_gemm_a4w4_asm"),
    signature=f"{_SCALED}, Tensor out",
    example=Example((_X4, _W4, _S4, _V4, _OUT), flops=2560, bytes=346),
)
@op(
    "aiter::gemm_afp4wfp4_",
    signature=f"{_SCALED}, dtype out_dtype, Tensor? out",
    example=Example((_X4, _W4, _S4, _V4, 15, _OUT, None, False), flops=2560, bytes=346),
)
@op(
    "torchao::mx_fp4_bf16",
    signature=_SCALED,
    example=Example((_X4, _T4, _S4, _V4), flops=2560, bytes=346),
)
def weight_product(a: Args) -> Work:
    """Activations [.., K] times a weight, both of any type."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(has_rank(w, 2) and x.shape)
    k = x.shape[-1] * numbers_per_element(x)
    n, inner = w.shape[0], w.shape[1] * numbers_per_element(w)
    if inner != k:
        n, inner = w.shape[1], w.shape[0] * numbers_per_element(w)
    require(inner == k)
    return stored_product(a, n, k)


# as above; and 5 of a bias of 2 bytes
@op(
    "aiter::gemm_a4w4",
    signature=f"{_SCALED}, Tensor? bias, dtype out_dtype",
    example=Example((_X4, _W4, _S4, _V4, _BIAS, 15, 1.0, 0.0, True), flops=2560, bytes=356),
)
def aiter_fp4(a: Args) -> Work:
    """A product of FP4 matrices; older versions are given the result before the bias."""
    following = a.values.get("out_dtype")
    if a.optional("bias") is not None and (following is None or isinstance(following, Tensor)):
        return weight_product(a.replaced(out=a.tensor("bias"), bias=following))
    return weight_product(a)


# two products 2 * 4 * 5 * 6; 48 + 60 of 1 byte, two scales of 4, out 40 of 2
@op(
    *("sgl_kernel::bmm_fp8", "flashinfer::bmm_fp8", "sglang::_bmm_fp8_op", "vllm::bmm_fp8"),
    signature=(
        f"{_XW}, Tensor out, Tensor scale_a, Tensor scale_b",
        f"{_SCALED}, dtype out_dtype, Tensor? out",
    ),
    example=Example((f8(2, 4, 6), f8(2, 6, 5), bf16(2, 4, 5), _ONE, _ONE), flops=480, bytes=196),
)
def batched(a: Args) -> Work:
    """A batch of products of FP8 matrices, the second as [batch, K, N]."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(size(x, -1) == size(w, -2) and size(x, -3) == size(w, -3))
    m, k, n = size(x, -2), size(x, -1), size(w, -1)
    out = fresh((size(x, -3), m, n), _out_dtype(a, x))
    work = product(x, w, out, m, n, k)
    return replace(work, reads=work.reads + read_tensors(a, "scale_a", "scale_b"))


# the product alone: 240; 24 + 6 + 30 + out 20 of 2 bytes
@op(
    "_LayerNormLinear",
    signature="Tensor x, Tensor norm, Tensor? shift, Tensor weight, Tensor? bias",
    example=Example((_X, bf16(6), None, _W, None), flops=240, bytes=160, mod=""),
)
def te_norm_linear(a: Args) -> Work:
    """TransformerEngine's norm and linear layer in one; the norm's FLOPs are not counted."""
    work = weight_product(a)
    return replace(work, reads=work.reads + a.present("norm", "shift"))


# both gradients, 240 each; go 20 + w 30 + dx 24, go 20 + x 24 + dw 30 of 2 bytes
op("_Linear", direction=BPROP, flops=480, bytes=296)(gradients_of(weight_product))
op("_LayerNormLinear", direction=BPROP, flops=480, bytes=296)(gradients_of(weight_product))


# 4 rows, each times one of two matrices: 2 * 4 * 5 * 6; 24, 60 and 20 of 2 bytes
@op(
    *("primus_turbo::grouped_gemm_impl", "primus_turbo::grouped_gemm"),
    *("primus_turbo_cpp_extension::grouped_gemm", "primus_turbo_cpp_extension::ck_grouped_gemm"),
    signature=_XW,
    example=Example((_X, bf16(2, 5, 6), _ONE, _ONE, False, True), flops=240, bytes=208),
)
def grouped(a: Args) -> Work:
    """Each row times the matrix of its group, [groups, N, K] or [groups, K, N]."""
    x, w = a.tensor("x"), a.tensor("weight")
    require(has_rank(x, 2) and has_rank(w, 3) and x.shape[1] in w.shape[1:])
    rows, k = x.shape
    n = w.shape[1] * w.shape[2] // max(1, k)
    return product(x, w, fresh((rows, n), x.dtype), rows, n, k)
