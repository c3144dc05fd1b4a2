"""Norms of libraries, alone or fused with the sum before them, or the rounding after them.

An element costs as in `normalization`: RMS norm 4 (square, sum, two products), the sum before it 1,
rounding to narrow numbers 5, 1 more if the scale is found first, and a rotation by position 3.
Bytes: input, residual and scale read once, each result written once; no statistics are kept, as no
backward pass needs them.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f32, i64
from pyprof.ops.libraries.rounding import group_scales
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like, require, row_count, size

FAMILY = "norm"

_X, _W, _X8, _ROWS, _ONE = bf16(4, 6), bf16(6), f8(4, 6), f32(4, 1), f32(1)
_IMAGE, _CHANNELS = bf16(2, 4, 3, 3), bf16(4)
_GROUPED = "Tensor input, int num_groups, Tensor weight, Tensor bias, float eps"
_SUMMED = "Tensor out, Tensor input, Tensor residual, Tensor residual_out"

_RMS, _ADD, _ROUND, _LARGEST, _TURN = 4, 1, 5, 1, 3
_LAYER = 8


def _weight(a: Args) -> Tensor:
    """Return the scale. Raises Unknown unless it is as long as a row."""
    weight = a.tensor("weight")
    require(size(weight, -1) == size(a.tensor("input"), -1))
    return weight


# 72 * 8; 72 and 2 * 4 read, 72 written of 2 bytes
@op(
    *("aiter::_groupnorm_run", "aiter::groupnorm_run"),
    signature=(_GROUPED, f"Tensor out, Tensor workspace, {_GROUPED}"),
    example=Example((_IMAGE, 2, _CHANNELS, _CHANNELS, 1e-5), flops=576, bytes=304),
)
def group_norm(a: Args) -> Work:
    """Group norm, given its result and where it keeps its sums, or not."""
    x = a.tensor("input")
    return Work(_LAYER * x.numel, (x, a.tensor("weight"), a.tensor("bias")), (like(x),))


# 24 * 4; 24 and 6 read, 24 written of 2 bytes
@op(
    *("_C::rms_norm", "sgl_kernel::rmsnorm", "sgl_kernel::gemma_rmsnorm", "aiter::rmsnorm"),
    *("aiter::rms_norm_cu", "flashinfer::rmsnorm", "flashinfer::gemma_rmsnorm"),
    signature="Tensor out, Tensor input, Tensor weight",
    example=Example((_X, _X, _W, 1e-6), flops=96, bytes=108),
)
@op(
    *("aiter::rms_norm", "aiter::rmsnorm2d_fwd", "aiter::rmsnorm2d_fwd_ck"),
    *("vllm::rocm_aiter_rms_norm", "sglang_profiler::rmsnorm_rms_norm", "LigerRMSNormFunction"),
    *("FusedRMSNormAffineFunction", "FusedRMSNormAffineMixedDtypesFunction", "RMSNormFunction"),
    signature="Tensor input, Tensor weight",
    example=Example((_X, _W, 1e-6, 0), flops=96, bytes=108),
)
# rounded by a scale of 4: 24 * 9; 24 written of 1 byte
@op(
    "_C::rms_norm_static_fp8_quant",
    signature="Tensor out, Tensor input, Tensor weight, Tensor scale",
    example=Example((_X8, _X, _W, _ONE, 1e-6), flops=216, bytes=88),
)
# of a sum: 24 * 5; 24, 24 and 6 read, 24 and 24 written of 2 bytes
@op(
    *("_C::fused_add_rms_norm", "sgl_kernel::fused_add_rmsnorm", "aiter::fused_add_rms_norm_cu"),
    *("sgl_kernel::gemma_fused_add_rmsnorm", "flashinfer::fused_add_rmsnorm"),
    *("flashinfer::gemma_fused_add_rmsnorm", "vllm::rocm_aiter_rmsnorm2d_fwd_with_add"),
    *("vllm::rocm_aiter_fused_add_rms_norm", "LigerFusedAddRMSNormFunction"),
    signature="Tensor input, Tensor residual, Tensor weight",
    example=Example((_X, _X, _W, 1e-6), flops=120, bytes=204),
)
@op(
    *("aiter::add_rmsnorm", "aiter::rmsnorm2d_fwd_with_add", "aiter::rmsnorm2d_fwd_with_add_ck"),
    signature=f"{_SUMMED}, Tensor weight",
    example=Example((_X, _X, _X, _X, _W, 1e-6), flops=120, bytes=204),
)
# 24 * 10: rounded to 24 of 1 byte by a scale of 4
@op(
    "_C::fused_add_rms_norm_static_fp8_quant",
    signature="Tensor out, Tensor input, Tensor residual, Tensor weight, Tensor scale",
    example=Example((_X8, _X, _X, _W, _ONE, 1e-6), flops=240, bytes=184),
)
# rounded by the largest of a row: 24 * 10; 24 and 6 read of 2 bytes, 24 of 1 and 4 scales of 4
# written
@op(
    *("_C::rms_norm_dynamic_per_token_quant", "_C::rms_norm_per_block_quant"),
    signature=(
        "Tensor out, Tensor input, Tensor weight, Tensor scales, float epsilon, Tensor? bound,"
        "Tensor? residual"
    ),
    example=Example((_X8, _X, _W, _ROWS, 1e-6, None, None), flops=240, bytes=100),
)
@op(
    *("aiter::rmsnorm_quant", "aiter::rmsnorm2d_fwd_with_dynamicquant"),
    "aiter::rmsnorm2d_fwd_with_dynamicquant_ck",
    signature="Tensor out, Tensor input, Tensor scales, Tensor weight",
    example=Example((_X8, _X, _ROWS, _W, 1e-6), flops=240, bytes=100),
)
@op(
    *("aiter::rmsnorm2d_fwd_with_smoothquant", "aiter::rmsnorm2d_fwd_with_smoothquant_ck"),
    signature="Tensor out, Tensor input, Tensor smooth, Tensor scales, Tensor weight",
    # and 6 of 4 bytes
    example=Example((_X8, _X, f32(6), _ROWS, _W), flops=240, bytes=124),
)
# the sum 24 more; the residual's 24 read and written of 2 bytes
@op(
    *("aiter::add_rmsnorm_quant", "aiter::rmsnorm2d_fwd_with_add_dynamicquant"),
    "aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck",
    signature=f"{_SUMMED}, Tensor scales, Tensor weight",
    example=Example((_X8, _X, _X, _X, _ROWS, _W), flops=264, bytes=196),
)
@op(
    "aiter::rmsnorm2d_fwd_with_add_smoothquant",
    signature=f"{_SUMMED}, Tensor smooth, Tensor scales, Tensor weight",
    example=Example((_X8, _X, _X, _X, f32(6), _ROWS, _W), flops=264, bytes=220),
)
# 24 * 10; 24 and 6 of 2 bytes read, 24 of 1 and a scale of 4 for each 3 written
@op(
    "vllm::rocm_aiter_rmsnorm_fp8_group_quant",
    signature="Tensor input, Tensor weight, float epsilon, int group",
    example=Example((_X, _W, 1e-6, 3), flops=240, bytes=116),
)
@op(
    "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant",
    signature="Tensor input, Tensor residual, Tensor weight, float epsilon, int group",
    example=Example((_X, _X, _W, 1e-6, 3), flops=264, bytes=212),
)
# the same with a scale for each of 4 rows
@op(
    "vllm::rocm_aiter_rmsnorm_fused_dynamic_quant",
    signature="Tensor input, Tensor weight, float epsilon, dtype dtype",
    example=Example((_X, _W, 1e-6, 24), flops=240, bytes=100),
)
@op(
    "vllm::rocm_aiter_rmsnorm_fused_add_dynamic_quant",
    signature="Tensor input, Tensor residual, Tensor weight, float epsilon, dtype dtype",
    example=Example((_X, _X, _W, 1e-6, 24), flops=264, bytes=196),
)
def rms_norm(a: Args) -> Work:
    """RMS norm; perhaps of a sum, kept as the new residual; perhaps rounded.

    It is rounded by a given scale, or by scales found in each row or group.
    """
    x, residual, given = a.tensor("input"), a.present("residual"), a.present("scale")
    new_scales, out = a.present("scales"), a.optional("out") or x
    if "group" in a.values:
        new_scales, out = (group_scales(a, x),), fresh(x.shape, "float8_e4m3fn")
    elif "dtype" in a.values:
        new_scales, out = (fresh((row_count(x),), "float32"),), fresh(x.shape, a.dtype())
    rounds = _ROUND * bool(given or new_scales) + _LARGEST * bool(new_scales)
    each = _RMS + _ADD * bool(residual) + rounds
    reads = (x, *residual, _weight(a), *a.present("smooth"), *given)
    return Work(each * x.numel, reads, (like(out, x.shape), *map(like, (*residual, *new_scales))))


# 24 * 8; 24, 6 and 6 read, 24 written of 2 bytes
@op(
    *("LigerLayerNormFunction", "FusedLayerNormAffineFunction", "aiter::layernorm2d_fwd"),
    *("FusedLayerNormAffineMixedDtypesFunction", "FastLayerNormFN", "aiter::layer_norm"),
    signature="Tensor input, Tensor weight, Tensor bias",
    example=Example((_X, _W, _W), flops=192, bytes=120, mod=""),
)
def layer_norm(a: Args) -> Work:
    """Layer norm with scale and shift, as in `normalization`; statistics are not counted."""
    x = a.tensor("input")
    affine = (_weight(a), a.tensor("bias"))
    return Work(_LAYER * x.numel, (x, *affine), (like(x),))


# 2 tokens, 2 + 1 heads of 4 normed and turned, 1 of values left: 24 * (4 + 3); 24 read and written,
# two scales of 4, 2 rows of 4 of sine and cosine of 2 bytes, 2 positions of 8
@op(
    *("_C::fused_qk_norm_rope", "sgl_kernel::fused_qk_norm_rope"),
    signature=(
        "Tensor qkv, int heads, int key_heads, int value_heads, int width, float epsilon,"
        "Tensor q_weight, Tensor k_weight, Tensor cache, any neox, Tensor positions"
    ),
    example=Example(
        (bf16(2, 16), 2, 1, 1, 4, 1e-6, *(bf16(4),) * 2, bf16(64, 4), True, i64(2)),
        flops=168,
        bytes=144,
    ),
)
def qk_norm_rope(a: Args) -> Work:
    """RMS norm of each head of queries and keys, and their rotation, in place."""
    qkv, cache, positions = a.tensor("qkv"), a.tensor("cache"), a.tensor("positions")
    heads = a.integer("heads", 0) + a.integer("key_heads", 0)
    tokens = row_count(qkv)
    turned = fresh((tokens, heads * a.integer("width", 0)), qkv.dtype)
    angles = fresh((min(tokens, size(cache, 0)), size(cache, -1)), cache.dtype)
    reads = (turned, a.tensor("q_weight"), a.tensor("k_weight"), angles, positions)
    return Work((_RMS + _TURN) * turned.numel, reads, (turned,))


# 2 tokens of 4 + 2 heads of 4, normed and turned whole: 48 * (4 + 3); read and written of 2 bytes,
# two scales of 4 of 2, 2 positions of 8, 2 rows of 4 of sine and cosine of 2
@op(
    "sglang::fused_inplace_qknorm_rope",
    signature=(
        "Tensor query, Tensor key, Tensor q_weight, Tensor k_weight, Tensor cache,"
        "Tensor positions, bool neox, float epsilon, int width, int turns"
    ),
    example=Example(
        (bf16(2, 4, 4), bf16(2, 2, 4), bf16(4), bf16(4), bf16(64, 4), i64(2), True, 1e-6, 4, 4),
        flops=336,
        bytes=240,
    ),
)
def norm_and_turn(a: Args) -> Work:
    """RMS norm of each head of queries and keys, and the rotation of its first part, in place."""
    given, cache = (a.tensor("query"), a.tensor("key")), a.tensor("cache")
    positions, width = a.tensor("positions"), a.integer("width", 0)
    turns = a.integer("turns", 0)
    count = sum(t.numel for t in given)
    require(0 < turns <= width and not count % width)
    angles = fresh((min(positions.numel, size(cache, 0)), size(cache, -1)), cache.dtype)
    reads = (*given, a.tensor("q_weight"), a.tensor("k_weight"), positions, angles)
    return Work(_RMS * count + _TURN * count // width * turns, reads, tuple(map(like, given)))


# 24 * 4 and 12 * 4; 24 and 6, 12 and 3 read, 24 and 12 written of 2 bytes
@op(
    "vllm::fused_mla_dual_rms_norm",
    signature="Tensor first, Tensor first_weight, Tensor second, Tensor second_weight",
    example=Example((_X, _W, bf16(4, 3), bf16(3), 1e-6, 1e-6), flops=144, bytes=162),
)
def two_norms(a: Args) -> Work:
    """RMS norm of two tensors, each with its own scale."""
    given = (a.tensor("first"), a.tensor("second"))
    weights = (a.tensor("first_weight"), a.tensor("second_weight"))
    require(all(size(w, -1) == size(t, -1) for t, w in zip(given, weights, strict=True)))
    return Work(_RMS * sum(t.numel for t in given), (*given, *weights), tuple(map(like, given)))
