"""Gated activations, rotations by position and rounding of libraries.

A sigmoid costs 20 operations and GELU's error function 24, as in `pointwise`; a gate's product 1.
Turning a pair of elements by an angle costs 6: 3 an element. Bytes: each input read once, each
result written once; of tables of sines and cosines the rows of as many tokens.
"""

from __future__ import annotations

from pyprof.ops.examples import Example, b8, bf16, f8, f32, i64, u8
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise import RULES
from pyprof.ops.work import Args, Work, fresh, like, require, size

FAMILY = "pointwise"

_OUT, _BOTH = bf16(4, 6), bf16(4, 12)
_ROUND = 5
_TURN = 3


def _gate(name: str) -> int:
    """Give the operations of the activation that an op's name tells, and of its product."""
    activation = "gelu" if "gelu" in name or "geglu" in name else "silu"
    if "relu" in name:
        activation = "relu"
    return RULES[activation].flops + 1


# 24 * (silu 21 + 1); 48 read, 24 written of 2 bytes
@op(
    *("_C::silu_and_mul", "sgl_kernel::silu_and_mul", "aiter::silu_and_mul", "_C::mul_and_silu"),
    *("flashinfer::silu_and_mul", "_C::swigluoai_and_mul", "_C::silu_and_mul_with_clamp"),
    signature="Tensor out, Tensor input",
    example=Example((_OUT, _BOTH), flops=528, bytes=144),
)
@op(
    *("_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "sgl_kernel::gelu_and_mul"),
    *("sgl_kernel::gelu_tanh_and_mul", "aiter::gelu_and_mul", "aiter::gelu_tanh_and_mul"),
    *("flashinfer::gelu_and_mul", "flashinfer::gelu_tanh_and_mul"),
    signature="Tensor out, Tensor input",
    # gelu 24
    example=Example((_OUT, _BOTH), flops=600, bytes=144),
)
@op(
    "_C::fatrelu_and_mul",
    signature="Tensor out, Tensor input",
    # a comparison and a product
    example=Example((_OUT, _BOTH, 0.1), flops=48, bytes=144),
)
@op(
    *("_C::silu_and_mul_quant", "aiter::scaled_silu_and_mul"),
    signature="Tensor out, Tensor input, Tensor scale",
    # rounding 5 more; 24 written of 1 byte, a scale of 4
    example=Example((f8(4, 6), _BOTH, f32(1)), flops=648, bytes=124),
)
@op(
    "_C::silu_and_mul_per_block_quant",
    signature="Tensor out, Tensor input, Tensor scales",
    # 4 scales of 4 written
    example=Example((f8(4, 6), _BOTH, f32(4, 1), 6), flops=648, bytes=136),
)
# rounded to 4 bits: 32 * (22 + 5); 64 read of 2 bytes and a scale of 4, 16 and 2 scales of 1 byte
# written
@op(
    "_C::silu_and_mul_nvfp4_quant",
    signature="Tensor out, Tensor scales, Tensor input, Tensor scale",
    example=Example((u8(1, 16), f8(1, 2), bf16(1, 64), f32(1)), flops=864, bytes=150),
)
def gated(a: Args) -> Work:
    """One half's activation times the other half."""
    x, out = a.tensor("input"), a.tensor("out")
    scale, scales = a.present("scale"), a.present("scales")
    each = _gate(a.op) + _ROUND * bool(scale or scales)
    return Work(each * (x.numel // 2), (x, *scale), (out, *scales))


# 24 * 24; 24 read, 24 written of 2 bytes
@op(
    *("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick", "sgl_kernel::gelu_quick"),
    "_C::gelu_tanh",
    signature="Tensor out, Tensor input",
    example=Example((_OUT, _OUT), flops=576, bytes=96),
)
def gelu(a: Args) -> Work:
    """An approximation of GELU, counted as GELU."""
    x = a.tensor("input")
    return Work(RULES["gelu"].flops * x.numel, (x,), (a.tensor("out"),))


# 24 * (silu 21 + 1); 24 and 24 read, 24 written of 2 bytes
@op(
    *("LigerSiLUMulFunction", "LigerGELUMulFunction"),
    signature="Tensor first, Tensor second",
    example=Example((_OUT, _OUT), flops=528, bytes=144, mod=""),
)
def gated_apart(a: Args) -> Work:
    """One tensor's activation times another."""
    x, y = a.tensor("first"), a.tensor("second")
    return Work(_gate(a.op.lower()) * x.numel, (x, y), (like(x),))


_Q, _K = bf16(2, 16), bf16(2, 8)
_POSITIONS, _TABLE = i64(2), bf16(64, 4)
_ROPE = "Tensor positions, Tensor query, Tensor? key, int width, Tensor cache"


# 48 elements of heads of 4, turned whole: 48 * 3; read and written of 2 bytes, 2 positions of 8, 2
# rows of 4 of sine and cosine of 2
@op(
    *("_C::rotary_embedding", "sgl_kernel::rotary_embedding", "_C::batched_rotary_embedding"),
    *("vllm::flashinfer_rotary_embedding", "vllm::rocm_aiter_rotary_embedding"),
    *("sglang::rotary_embedding_with_key", "vllm::rocm_aiter_triton_rotary_embedding"),
    signature=_ROPE,
    example=Example((_POSITIONS, _Q, _K, 4, _TABLE, True), flops=144, bytes=224),
)
# queries alone, 32 elements
@op(
    "sglang::rotary_embedding_without_key",
    signature="Tensor positions, Tensor query, int width, Tensor cache",
    example=Example((_POSITIONS, _Q, 4, _TABLE, True), flops=96, bytes=160),
)
@op(
    "sglang::apply_rope_inplace",
    signature="Tensor query, Tensor key, Tensor cache, Tensor positions",
    example=Example(
        (bf16(2, 4, 4), bf16(2, 2, 4), _TABLE, _POSITIONS, True, 4), flops=144, bytes=224
    ),
)
# another tensor takes the result: as many bytes
@op(
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
    signature=(
        "Tensor query, Tensor? key, Tensor q_out, Tensor? k_out, Tensor cache, Tensor positions"
    ),
    example=Example(
        (bf16(2, 4, 4), bf16(2, 2, 4), bf16(2, 4, 4), bf16(2, 2, 4), _TABLE, _POSITIONS),
        flops=144,
        bytes=224,
    ),
)
@op(
    "LigerRopeFunction",
    signature="Tensor query, Tensor key, Tensor cosine, Tensor sine",
    # sines and cosines of 2 tokens by 4, of 2 bytes
    example=Example(
        (bf16(1, 4, 2, 4), bf16(1, 2, 2, 4), *(bf16(1, 2, 4),) * 2), flops=144, bytes=224, mod=""
    ),
)
def rotary(a: Args) -> Work:
    """Queries and keys turned by their positions, in place; of each head what the table is for."""
    given = (a.tensor("query"), *a.present("key"))
    if a.optional("cosine") is not None:
        tables = (a.tensor("cosine"), a.tensor("sine"))
        return Work(_TURN * sum(t.numel for t in given), (*given, *tables), tuple(map(like, given)))
    cache, positions = a.tensor("cache"), a.tensor("positions")
    width = a.integer("width", 0) if "width" in a.values else size(given[0], -1)
    turns = size(cache, -1)
    require(0 < turns <= width)
    turned = tuple(fresh((t.numel // width * turns,), t.dtype) for t in given)
    tokens = size(positions, -1)
    angles = fresh((min(tokens, size(cache, 0)), turns), cache.dtype)
    return Work(_TURN * sum(t.numel for t in turned), (*turned, positions, angles), turned)


# 2 tokens of 4 and of 2 heads of 4, turned whole by tables of half as much: 48 * 3; 48 read and
# written of 2 bytes, 2 positions of 8, 2 rows of 2 sines and 2 cosines of 2
@op(
    "aiter::rope_cached_positions_2c_fwd_impl",
    signature=(
        "Tensor q_out, Tensor k_out, Tensor query, Tensor key, Tensor cosine, Tensor sine,"
        "Tensor positions, int style, bool halves"
    ),
    example=Example(
        (
            *(*(bf16(2, 1, 4, 4), bf16(2, 1, 2, 4)) * 2, *(bf16(64, 1, 1, 2),) * 2, i64(2, 1)),
            *(0, True, False),
        ),
        flops=144,
        bytes=224,
    ),
)
def rotary_two(a: Args) -> Work:
    """Queries and keys [tokens, batch, heads, head]; what no table is for is copied."""
    given = (a.tensor("query"), a.tensor("key"))
    tables, positions = (a.tensor("cosine"), a.tensor("sine")), a.tensor("positions")
    width = size(tables[0], -1)
    turns = width * (2 if a.flag("halves", default=True) else 1)
    require(0 < turns <= size(given[0], -1))
    count = sum(t.numel // max(1, size(t, -1)) * turns for t in given)
    rows = tuple(fresh((min(positions.numel, size(t, 0)), width), t.dtype) for t in tables)
    return Work(_TURN * count, (*given, positions, *rows), tuple(map(like, given)))


# 24 logits, each over or times its penalty where it was seen before: 24 * 2; 24 of 4 bytes and two
# masks of 24 of 1 and 4 penalties of 4 read, 24 written
@op(
    "_C::apply_repetition_penalties_",
    signature="Tensor logits, Tensor first_mask, Tensor second_mask, Tensor penalties",
    example=Example((f32(4, 6), b8(4, 6), b8(4, 6), f32(4)), flops=48, bytes=256),
)
def penalties(a: Args) -> Work:
    """Logits of tokens that a request has already, made smaller, in place."""
    x = a.tensor("logits")
    reads = (x, *(a.tensor(name) for name in ("first_mask", "second_mask", "penalties")))
    return Work(2 * x.numel, reads, (like(x),))


# 24 * (silu 21 + 1 + 6); 48 of 2 bytes read, 24 of 1 and a scale of 4 for each 3 written
@op(
    "vllm::rocm_aiter_act_mul_and_fp8_group_quant",
    signature="Tensor input, int group",
    example=Example((_BOTH, 3), flops=672, bytes=152),
)
def gated_by_groups(a: Args) -> Work:
    """One half's activation times the other half, each group rounded to FP8 by its own scale."""
    x, group = a.tensor("input"), a.integer("group", 0)
    if group <= 0:
        raise Unknown("group not recorded")
    out = fresh((*x.shape[:-1], size(x, -1) // 2), "float8_e4m3fn")
    rows = out.numel // max(1, size(out, -1))
    scales = fresh((rows, -(-size(out, -1) // group)), "float32")
    return Work((_gate("silu") + _ROUND + 1) * out.numel, (x,), (out, scales))


# 2 tokens of 4 + 2 heads of 4, normed and turned whole: 48 * (4 + 3); read and written of 2 bytes,
# two scales of 4 of 2, 2 positions of 8, 2 rows of 4 of sine and cosine of 2
@op(
    "sglang::fused_inplace_qknorm_rope",
    family="norm",
    signature=(
        "Tensor query, Tensor key, Tensor q_weight, Tensor k_weight, Tensor cache,"
        "Tensor positions, bool neox, float epsilon, int width, int turns"
    ),
    example=Example(
        (bf16(2, 4, 4), bf16(2, 2, 4), bf16(4), bf16(4), _TABLE, _POSITIONS, True, 1e-6, 4, 4),
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


_RMS = 4
