"""One product of each chosen expert: rows times the matrix of their expert.

2 M N K for M choices of experts. Bytes: rows read and written once; of the weights those of at most
as many experts as there are choices.
"""

from pyprof.ops.examples import Example, bf16, f8, f32, i32, i64, u8
from pyprof.ops.libraries.experts.expert_layers import chosen_weights
from pyprof.ops.libraries.weight_products import numbers_per_element
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require, row_count, size, twice_of

FAMILY = "moe"

_X, _UP, _DOWN, _INNER = bf16(4, 6), bf16(8, 10, 6), bf16(8, 6, 5), bf16(4, 2, 5)
_CHOSEN, _IDS, _SORTED, _COUNT = f32(4, 2), i32(4, 2), i32(64), i32(1)
_GIVEN, _MATRICES, _MADE = f8(8, 6), f8(2, 5, 6), bf16(8, 5)
_SCALES, _MORE = f32(8, 1), f32(2, 5)

_GROUPED = "Tensor input, Tensor matrices, Tensor scale_a, Tensor scale_b"


# 8 rows, each times one of 2 matrices: 2 * 8 * 6 * 5; 48 + 60 of 1 byte, 8 + 10 scales of 4, 40
# written of 2
@op(
    *("_C::cutlass_moe_mm", "_C::cutlass_fp4_group_mm", "sgl_kernel::cutlass_fp4_group_mm"),
    *("sgl_kernel::cutlass_w4a8_moe_mm", "_C::cutlass_blockwise_scaled_grouped_mm"),
    *("_C::cutlass_w4a8_moe_mm", "_C::cutlass_mxfp4_group_mm", "sglang::cutlass_fp4_group_mm"),
    signature=f"Tensor out, {_GROUPED}",
    example=Example((_MADE, _GIVEN, _MATRICES, _SCALES, _MORE), flops=480, bytes=260),
)
@op(
    "_C::cutlass_mxfp8_grouped_mm",
    signature=f"{_GROUPED}, Tensor out",
    example=Example((_GIVEN, _MATRICES, _SCALES, _MORE, _MADE), flops=480, bytes=260),
)
@op(
    *("deep_gemm::m_grouped_fp8_gemm_nt_contiguous", "deep_gemm::m_grouped_fp8_gemm_nn_contiguous"),
    signature="Tensor input, Tensor scale_a, Tensor matrices, Tensor scale_b, Tensor out",
    example=Example((_GIVEN, _SCALES, _MATRICES, _MORE, _MADE), flops=480, bytes=260),
)
@op(
    "sgl_kernel::fp8_blockwise_scaled_grouped_mm",
    signature=(
        "Tensor out, any a_ptrs, any b_ptrs, any out_ptrs, any a_scales_ptrs, any b_scales_ptrs,"
        f"{_GROUPED}"
    ),
    example=Example(
        (_MADE, *(_SORTED,) * 5, _GIVEN, _MATRICES, _SCALES, _MORE), flops=480, bytes=260
    ),
)
def grouped(a: Args) -> Work:
    """A product of each row with its expert's matrix, whichever that is."""
    x, w, out = a.tensor("input"), a.tensor("matrices"), a.tensor("out")
    rows, n = size(out, 0), size(out, -1)
    k = size(x, -1) * numbers_per_element(x)
    weights = (chosen_weights(w, rows), chosen_weights(a.tensor("scale_b"), rows))
    params = {"M": rows, "N": n, "K": k, "E": size(w, 0), "type": x.dtype}
    return Work(2 * rows * n * k, (x, a.tensor("scale_a"), *weights), (out,), params)


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 and 8 experts of 30 of 2 bytes, 8 numbers and weights
# of 4, 40 written of 2
@op(
    "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel",
    signature=(
        "Tensor input, Tensor matrices, Tensor? bias, Tensor out, Tensor? scale_a, Tensor? scale_b,"
        "Tensor? zeros, Tensor weights, Tensor experts"
    ),
    example=Example(
        (_X, bf16(8, 5, 6), None, bf16(8, 5), None, None, None, _CHOSEN, _IDS),
        flops=480,
        bytes=672,
        op="fused_moe_triton_kernels_invoke_fused_moe_kernel_427",
    ),
)
def one_of_two(a: Args) -> Work:
    """One product of the chosen experts, the first or the second, by the matrices' sizes."""
    x, w, ids, out = (a.tensor(name) for name in ("input", "matrices", "experts", "out"))
    require(has_rank(w, 3) and size(x, -1) == w.shape[2])  # experts, outputs, inputs
    kept = (w, *(t for t in a.present("bias", "scale_b", "zeros") if t.shape))
    weights = tuple(chosen_weights(t, ids.numel) for t in kept)
    scales = tuple(t for t in a.present("scale_a") if t.shape)
    reads = (x, *weights, *scales, a.tensor("weights"), ids)
    return Work(2 * ids.numel * w.shape[1] * w.shape[2], reads, (out,))


# the first products of 4 tokens with 2 experts each: 2 * 8 * 10 * 6; tokens 24, 8 experts of 60 and
# the result's 40 of 2 bytes
@op(
    *("aiter::moe_cktile2stages_gemm1_ck", "aiter::moe_cktile2stages_gemm2_ck"),
    signature=(
        "Tensor input, Tensor matrices, Tensor out, any sorted, any experts, any valid, int chosen,"
        "any pad_n, any pad_k, Tensor? weights, Tensor? scale_a, Tensor? scale_b"
    ),
    example=Example((_X, _UP, _INNER, _SORTED, _SORTED, _SORTED, 2), flops=960, bytes=1088),
)
def ck_tile_stage(a: Args) -> Work:
    """One of the two products: the second is given a row for each choice."""
    x, w, out = a.tensor("input"), a.tensor("matrices"), a.tensor("out")
    choices = row_count(x)
    choices *= a.integer("chosen", 0) if "gemm1" in a.op else 1
    packed = numbers_per_element(w)
    require(choices and has_rank(w, 3) and w.shape[2] * packed == size(x, -1))
    kept = (w, *(t for t in a.present("scale_b") if t.shape))
    weights = tuple(chosen_weights(t, choices) for t in kept)
    scales = tuple(t for t in a.present("scale_a") if t.shape)
    flops = 2 * choices * w.shape[1] * w.shape[2] * packed
    return Work(flops, (x, *weights, *scales), (out,))


_STAGE = (
    "Tensor sorted, Tensor sorted_experts, Tensor valid, Tensor out, int chosen, any kernel,"
    "Tensor? scale_w, Tensor? scale_x"
)


# the first products of 4 tokens with 2 experts each: 2 * 8 * 10 * 6; tokens 24, 8 experts of 60 and
# the result's 40 of 2 bytes
@op(
    "aiter::ck_moe_stage1",
    signature=f"Tensor input, Tensor up, Tensor down, {_STAGE}",
    example=Example((_X, _UP, _DOWN, _SORTED, _SORTED, _COUNT, _INNER, 2), flops=960, bytes=1088),
)
# the same in FP8: 24 and 8 experts of 60 of 1 byte, 4 and 8 scales of 4, 40 of 2 bytes
@op(
    "aiter::moe_stage1_g1u1",
    signature=(
        "Tensor input, Tensor up, Tensor down, Tensor sorted, Tensor sorted_experts, Tensor valid,"
        "Tensor out, int width, any kernel, any block, any split, any activation, any quantized,"
        "Tensor? scale_x, Tensor? scale_w"
    ),
    example=Example(
        (
            *(f8(4, 6), f8(8, 10, 6), _DOWN, _SORTED, _SORTED, _COUNT, _INNER, 5, "", 32, 0, 0),
            *(2, f32(4, 1), f32(8, 1), None),
        ),
        flops=960,
        bytes=632,
    ),
)
# the second: 2 * 8 * 6 * 5; 40 read, 8 experts of 30, 24 written of 2 bytes
@op(
    "aiter::ck_moe_stage2",
    signature=f"Tensor input, Tensor up, Tensor down, {_STAGE}",
    example=Example((_INNER, _UP, _DOWN, _SORTED, _SORTED, _COUNT, _X, 2), flops=480, bytes=608),
)
def stage(a: Args) -> Work:
    """One of the two products of the chosen experts."""
    x, out = a.tensor("input"), a.tensor("out")
    many = out if "stage1" in a.op else x  # [tokens, chosen, inner]
    w = a.tensor("up" if "stage1" in a.op else "down")
    choices = row_count(many)
    flops = 2 * choices * size(w, 1) * size(w, 2) * numbers_per_element(w)
    return Work(flops, (x, chosen_weights(w, choices), *a.present("scale_w", "scale_x")), (out,))


_MARLIN = "any sorted, any experts, any padded, Tensor? weights, int block, int chosen,"
_MARLIN_SIZES = "int m, int n, int k"


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 of 2 bytes, 8 experts' packed 60 of 1, scales 40 of 2,
# 40 written of 2
@op(
    *("_moe_C::moe_wna16_marlin_gemm", "sgl_kernel::moe_wna16_marlin_gemm"),
    signature=(
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor? bias, Tensor scale_b,"
            "Tensor? scale_a, Tensor? factor, Tensor? zeros, Tensor? indices, Tensor? order,"
            f"Tensor workspace, {_MARLIN} any weighs, int kind, {_MARLIN_SIZES}, any whole,"
            "any atomic, any reduces, any floats, any a, any b, any c"
        ),
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor? bias, Tensor scale_b,"
            "Tensor? factor, Tensor? zeros, Tensor? indices, Tensor? order, Tensor workspace,"
            f"{_MARLIN} any weighs, any parallel, int kind, {_MARLIN_SIZES}, any whole, any atomic,"
            "any reduces, any floats"
        ),
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor scale_b, Tensor? zeros,"
            "Tensor? indices, Tensor? order, Tensor workspace,"
            f"{_MARLIN} any weighs, any parallel, int kind, {_MARLIN_SIZES}, any whole, any atomic,"
            "any reduces, any floats"
        ),
    ),
    example=Example(
        (
            *(_X, None, u8(8, 60), bf16(8, 1, 5), None, None, None, _SORTED, _SORTED, _SORTED),
            *(_SORTED, _CHOSEN, 64, 2, True, False, 4, 4, 5, 6, True, False, True, False),
        ),
        flops=480,
        bytes=688,
    ),
)
def marlin_experts(a: Args) -> Work:
    """Packed weights in an order of their own: the call states the sizes."""
    x, w, scale = a.tensor("input"), a.tensor("matrices"), a.tensor("scale_b")
    m, n, k = (a.integer(name, 0) for name in ("m", "n", "k"))
    require(n and k == size(x, -1))
    choices = m * max(1, a.integer("chosen", 1))
    out = fresh((choices, n), x.dtype)
    return Work(
        2 * choices * n * k,
        (x, chosen_weights(w, choices), chosen_weights(scale, choices)),
        (out,),
        {"M": choices, "N": n, "K": k},
    )


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 of 2 bytes, 8 experts' 15 of 1, their 5 scales of 2,
# 40 written of 2
@op(
    "_moe_C::moe_wna16_gemm",
    signature=(
        "Tensor input, Tensor out, Tensor matrices, Tensor scale_b, Tensor? zeros, Tensor? weights,"
        "Tensor sorted, Tensor experts, Tensor padded, int chosen, int block_m, int block_n,"
        "int block_k, int bits"
    ),
    example=Example(
        (
            *(_X, bf16(4, 2, 5), u8(8, 5, 3), bf16(8, 5, 1), None, None, *(i32(64),) * 3, 2),
            *(16, 32, 64, 4),
        ),
        flops=480,
        bytes=328,
    ),
)
def packed_experts(a: Args) -> Work:
    """One product of the chosen experts, whose weights hold two numbers in a byte, or one."""
    x, w, bits = a.tensor("input"), a.tensor("matrices"), a.integer("bits", 0)
    k = size(x, -1)
    require(bits in (4, 8) and has_rank(w, 3) and w.shape[2] * 8 == k * bits)
    choices = x.numel // max(1, k) * a.integer("chosen", 1)
    kept = tuple(chosen_weights(t, choices) for t in (w, *a.present("scale_b", "zeros")))
    out = fresh((choices, w.shape[1]), x.dtype)
    params: dict[str, object] = {"M": choices, "N": w.shape[1], "K": k, "E": w.shape[0]}
    return Work(2 * choices * w.shape[1] * k, (x, *kept), (out,), params)


# 8 rows, each times one of 2 matrices [6, 5]: 2 * 8 * 6 * 5; 48, 60 and 40 of 2 bytes
@op(
    *("GroupedGemm", "grouped_gemm::wrapped_gmm"),
    family="gemm",
    signature=(
        "Tensor input, Tensor matrices, Tensor sizes, bool transposed",
        "Tensor input, Tensor matrices, Tensor sizes, bool first, bool transposed",
    ),
    example=Example((bf16(8, 6), bf16(2, 6, 5), i64(2), False), flops=480, bytes=296, mod=""),
)
def by_sizes(a: Args) -> Work:
    """Rows divided among matrices [experts, K, N], or [experts, N, K] if they are transposed."""
    x, w = a.tensor("input"), a.tensor("matrices")
    transposed = a.flag("transposed", default=False)
    require(not a.flag("first", default=False) and has_rank(x, 2) and has_rank(w, 3))  # rows
    k, n = (w.shape[2], w.shape[1]) if transposed else w.shape[1:]
    require(k == x.shape[1])
    params = {"M": x.shape[0], "N": n, "K": k, "E": w.shape[0], "type": x.dtype}
    return Work(2 * x.shape[0] * n * k, (x, w), (like(x, (x.shape[0], n)),), params)


# twice as many; go 40, 48 and 60 read, 48 and 60 written of 2 bytes
op("GroupedGemm", direction=BPROP, flops=960, bytes=512)(twice_of(by_sizes))
