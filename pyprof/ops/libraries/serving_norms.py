"""Norms of libraries, alone or fused with the sum before them, or the rounding behind them.

An element costs as in `normalization`: RMS norm 4 (square, sum, two products), the sum before it 1,
rounding to narrow numbers 5. Bytes: input, residual and scale read once, each result written once;
no statistics are kept, as nobody needs them for a backward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.ops.examples import Example, bf16, f8, f32, i64
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like, require, size

if TYPE_CHECKING:
    from pyprof.marker import Tensor

FAMILY = "norm"

_X, _W = bf16(4, 6), bf16(6)
_X8, _ROWS = f8(4, 6), f32(4, 1)
_ONE = f32(1)
_IMAGE, _CHANNELS = bf16(2, 4, 3, 3), bf16(4)
_GROUPED = "Tensor input, int num_groups, Tensor weight, Tensor bias, float eps"

RMS, ADD, ROUND = 4, 1, 5
_LAYER = 8


def _weight(a: Args) -> Tensor:
    """Give the scale, as long as what is normed. Raises Unknown where it is not."""
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
    *("vllm::rocm_aiter_rms_norm", "sglang_profiler::rmsnorm_rms_norm"),
    "LigerRMSNormFunction",
    signature="Tensor input, Tensor weight",
    example=Example((_X, _W, 1e-6, 0), flops=96, bytes=108),
)
# as above, of what was made there by quantizing: 5 an element more, 24 of 1 byte and a scale of 4
@op(
    "_C::rms_norm_static_fp8_quant",
    signature="Tensor out, Tensor input, Tensor weight, Tensor scale",
    example=Example((_X8, _X, _W, _ONE, 1e-6), flops=216, bytes=88),
)
def rms_norm(a: Args) -> Work:
    """RMS norm, given its result or not."""
    x = a.tensor("input")
    out = a.optional("out") or like(x)
    scale = a.present("scale")
    each = RMS + ROUND * bool(scale)
    return Work(each * x.numel, (x, _weight(a), *scale), (like(out, x.shape),))


# 24 * 5; 24, 24 and 6 read, 24 and 24 written of 2 bytes
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
    signature="Tensor out, Tensor input, Tensor residual, Tensor residual_out, Tensor weight",
    example=Example((_X, _X, _X, _X, _W, 1e-6), flops=120, bytes=204),
)
# 24 * 10: rounded to 24 of 1 byte by a scale of 4
@op(
    "_C::fused_add_rms_norm_static_fp8_quant",
    signature="Tensor out, Tensor input, Tensor residual, Tensor weight, Tensor scale",
    example=Example((_X8, _X, _X, _W, _ONE, 1e-6), flops=240, bytes=184),
)
def add_rms_norm(a: Args) -> Work:
    """The sum of input and residual, kept as the new residual, and its RMS norm."""
    x, residual = a.tensor("input"), a.tensor("residual")
    scale, out = a.present("scale"), a.optional("out") or like(x)
    each = RMS + ADD + ROUND * bool(scale)
    reads = (x, residual, _weight(a), *scale)
    return Work(each * x.numel, reads, (like(out, x.shape), like(residual)))


# 24 * 10: the largest of a row 1, rounding 5; 24 and 6 read of 2 bytes, 24 of 1 and 4 scales of 4
# written
@op(
    *("_C::rms_norm_dynamic_per_token_quant", "_C::rms_norm_per_block_quant"),
    signature=(
        "Tensor out, Tensor input, Tensor weight, Tensor scale, float epsilon, Tensor? bound,"
        "Tensor? residual"
    ),
    example=Example((_X8, _X, _W, _ROWS, 1e-6, None, None), flops=240, bytes=100),
)
@op(
    *("aiter::rmsnorm2d_fwd_with_dynamicquant", "aiter::rmsnorm_quant"),
    "aiter::rmsnorm2d_fwd_with_dynamicquant_ck",
    signature="Tensor out, Tensor input, Tensor scale, Tensor weight",
    example=Example((_X8, _X, _ROWS, _W, 1e-6), flops=240, bytes=100, op="rmsnorm_quant"),
)
@op(
    *("aiter::rmsnorm2d_fwd_with_smoothquant", "aiter::rmsnorm2d_fwd_with_smoothquant_ck"),
    signature="Tensor out, Tensor input, Tensor smooth, Tensor scale, Tensor weight",
    # and 6 of 4 bytes
    example=Example((_X8, _X, f32(6), _ROWS, _W), flops=240, bytes=124),
)
# the sum 24 more; the residual's 24 read and written of 2 bytes
@op(
    *("aiter::rmsnorm2d_fwd_with_add_dynamicquant", "aiter::add_rmsnorm_quant"),
    "aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck",
    signature=(
        "Tensor out, Tensor input, Tensor residual, Tensor residual_out, Tensor scale,Tensor weight"
    ),
    example=Example((_X8, _X, _X, _X, _ROWS, _W), flops=264, bytes=196, op="add_rmsnorm_quant"),
)
@op(
    "aiter::rmsnorm2d_fwd_with_add_smoothquant",
    signature=(
        "Tensor out, Tensor input, Tensor residual, Tensor residual_out, Tensor smooth,"
        "Tensor scale, Tensor weight"
    ),
    example=Example((_X8, _X, _X, _X, f32(6), _ROWS, _W), flops=264, bytes=220),
)
def rms_norm_quant(a: Args) -> Work:
    """RMS norm, perhaps of a sum, rounded by scales that are found in each row."""
    x, residual = a.tensor("input"), a.present("residual")
    out, scale = a.tensor("out"), a.tensor("scale")
    each = RMS + ADD * bool(residual) + 1 + ROUND
    reads = (x, *residual, _weight(a), *a.present("smooth"))
    return Work(each * x.numel, reads, (like(out), *map(like, residual), like(scale)))


# 24 * 10; 24 and 6 of 2 bytes read, 24 of 1 and a scale of 4 for each 3 written
@op(
    "vllm::rocm_aiter_rmsnorm_fp8_group_quant",
    signature="Tensor input, Tensor weight, float epsilon, int group",
    example=Example((_X, _W, 1e-6, 3), flops=240, bytes=116),
)
# the sum 24 more; the residual's 24 read and written of 2 bytes
@op(
    "vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant",
    signature="Tensor input, Tensor residual, Tensor weight, float epsilon, int group",
    example=Example((_X, _X, _W, 1e-6, 3), flops=264, bytes=212),
)
def rms_norm_group_quant(a: Args) -> Work:
    """RMS norm, perhaps of a sum, each group of a row rounded to FP8 by a scale of its own."""
    x, residual, group = a.tensor("input"), a.present("residual"), a.integer("group", 0)
    if group <= 0:
        raise Unknown("group not recorded")
    rows = x.numel // max(1, size(x, -1))
    scales = fresh((rows, -(-size(x, -1) // group)), "float32")
    each = RMS + ADD * bool(residual) + 1 + ROUND
    out = fresh(x.shape, "float8_e4m3fn")
    return Work(each * x.numel, (x, *residual, _weight(a)), (out, *map(like, residual), scales))


# 24 * 8; 24, 6 and 6 read, 24 written of 2 bytes
@op(
    *("LigerLayerNormFunction", "FusedLayerNormAffineFunction", "aiter::layernorm2d_fwd"),
    *("FusedLayerNormAffineMixedDtypesFunction", "FastLayerNormFN", "aiter::layer_norm"),
    signature="Tensor input, Tensor weight, Tensor bias",
    example=Example((_X, _W, _W), flops=192, bytes=120, op="FusedLayerNormAffineFunction", mod=""),
)
def layer_norm(a: Args) -> Work:
    """Layer norm with scale and shift, as in `normalization`; statistics are not counted."""
    x = a.tensor("input")
    affine = (_weight(a), a.tensor("bias"))
    return Work(_LAYER * x.numel, (x, *affine), (like(x),))


# 24 * 4; 24 and 6 read, 24 written of 2 bytes
@op(
    *("FusedRMSNormAffineFunction", "FusedRMSNormAffineMixedDtypesFunction", "RMSNormFunction"),
    signature="Tensor input, Tensor weight",
    example=Example((_X, _W, (6,), 1e-6), flops=96, bytes=108, mod=""),
)
def apex_rms_norm(a: Args) -> Work:
    """Apex's RMS norm."""
    return rms_norm(a)


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
    tokens = qkv.numel // max(1, size(qkv, -1))
    turned = fresh((tokens, heads * a.integer("width", 0)), qkv.dtype)
    angles = fresh((min(tokens, size(cache, 0)), size(cache, -1)), cache.dtype)
    reads = (turned, a.tensor("q_weight"), a.tensor("k_weight"), angles, positions)
    return Work((RMS + 3) * turned.numel, reads, (turned,))


# 24 * 10; 24 and 6 of 2 bytes read, 24 of 1 and 4 scales of 4 written
@op(
    "vllm::rocm_aiter_rmsnorm_fused_dynamic_quant",
    signature="Tensor input, Tensor weight, float epsilon, dtype dtype",
    example=Example((_X, _W, 1e-6, 24), flops=240, bytes=100),
)
# the sum 24 more; the residual's 24 read and written of 2 bytes
@op(
    "vllm::rocm_aiter_rmsnorm_fused_add_dynamic_quant",
    signature="Tensor input, Tensor residual, Tensor weight, float epsilon, dtype dtype",
    example=Example((_X, _X, _W, 1e-6, 24), flops=264, bytes=196),
)
def rms_norm_quant_new(a: Args) -> Work:
    """RMS norm, perhaps of a sum, each row rounded to the type that is asked for."""
    x, residual = a.tensor("input"), a.present("residual")
    out = fresh(x.shape, a.dtype())
    scales = fresh((x.numel // max(1, size(x, -1)),), "float32")
    each = RMS + ADD * bool(residual) + 1 + ROUND
    return Work(each * x.numel, (x, *residual, _weight(a)), (out, *map(like, residual), scales))


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
    return Work(RMS * sum(t.numel for t in given), (*given, *weights), tuple(map(like, given)))
