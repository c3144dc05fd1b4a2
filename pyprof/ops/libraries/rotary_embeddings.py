"""Rotations of queries and keys by their positions.

Turning a pair of elements by an angle costs 6: 3 an element. Bytes: each input read once, each
result written once; of tables of sines and cosines the rows of as many tokens.
"""

from pyprof.ops.examples import Example, bf16, i64
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like, require, row_count, size

FAMILY = "pointwise"

_TURN = 3

_Q, _K = bf16(2, 16), bf16(2, 8)
_POSITIONS, _TABLE = i64(2), bf16(64, 4)
_Q_HEADS, _K_HEADS = bf16(2, 4, 4), bf16(2, 2, 4)


# 48 elements of heads of 4, turned whole: 48 * 3; read and written of 2 bytes, 2 positions of 8, 2
# rows of 4 of sine and cosine of 2
@op(
    *("_C::rotary_embedding", "sgl_kernel::rotary_embedding", "_C::batched_rotary_embedding"),
    *("vllm::flashinfer_rotary_embedding", "vllm::rocm_aiter_rotary_embedding"),
    *("sglang::rotary_embedding_with_key", "vllm::rocm_aiter_triton_rotary_embedding"),
    signature="Tensor positions, Tensor query, Tensor? key, int width, Tensor cache",
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
    example=Example((_Q_HEADS, _K_HEADS, _TABLE, _POSITIONS, True, 4), flops=144, bytes=224),
)
# another tensor takes the result: as many bytes
@op(
    "sgl_kernel::apply_rope_pos_ids_cos_sin_cache",
    signature=(
        "Tensor query, Tensor? key, Tensor q_out, Tensor? k_out, Tensor cache, Tensor positions"
    ),
    example=Example(
        (_Q_HEADS, _K_HEADS, _Q_HEADS, _K_HEADS, _TABLE, _POSITIONS), flops=144, bytes=224
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
    """Queries and keys turned by their positions, in place; of each head what the table covers."""
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
    """Queries and keys [tokens, batch, heads, head]; what the table does not cover is copied."""
    given = (a.tensor("query"), a.tensor("key"))
    tables, positions = (a.tensor("cosine"), a.tensor("sine")), a.tensor("positions")
    width = size(tables[0], -1)
    turns = width * (2 if a.flag("halves", default=True) else 1)
    require(0 < turns <= size(given[0], -1))
    count = sum(row_count(t) * turns for t in given)
    rows = tuple(fresh((min(positions.numel, size(t, 0)), width), t.dtype) for t in tables)
    return Work(_TURN * count, (*given, positions, *rows), tuple(map(like, given)))
