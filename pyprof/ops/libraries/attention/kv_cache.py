"""Keys and values put into the paged cache of a serving framework, or taken out of it.

Nothing is computed except the rounding for caches of narrow numbers, which is not counted. Bytes:
each new key and value read once and written once in the cache's type, and the target slots read
once.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f8, f32, i64, u8
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like, require, size

FAMILY = "copy"

_KEY, _CACHE = bf16(4, 2, 8), f8(64, 16, 2, 8)
_SLOTS = i64(4)


# 64 and 64 read of 2 bytes, written of 1, 4 slots of 8
@op(
    *("_C_cache_ops::reshape_and_cache_flash", "_C_cache_ops::reshape_and_cache"),
    *("sglang::store_cache", "sgl_kernel::set_kv_buffer", "aiter::reshape_and_cache"),
    *("aiter::reshape_and_cache_flash", "sglang_profiler::memory_pool__set_kv_buffer_impl"),
    *("vllm::rocm_aiter_reshape_and_cache", "_C_cache_ops::reshape_and_cache_shuffle"),
    signature="Tensor key, Tensor value, Tensor key_cache, Tensor value_cache, Tensor slots",
    example=Example((_KEY, _KEY, _CACHE, _CACHE, _SLOTS, "fp8"), flops=0, bytes=416),
)
# the same, the caches first
@op(
    "sgl_kernel::store_kv_cache",
    signature="Tensor key_cache, Tensor value_cache, Tensor slots, Tensor key, Tensor value",
    example=Example((_CACHE, _CACHE, _SLOTS, _KEY, _KEY), flops=0, bytes=416),
)
# 4 rows of 24 and 8 read of 2 bytes, 4 of 32 written of 2, 4 slots of 8
@op(
    *("_C_cache_ops::concat_and_cache_mla", "aiter::concat_and_cache_mla"),
    signature="Tensor latent, Tensor turned, Tensor cache, Tensor slots",
    example=Example((bf16(4, 24), bf16(4, 8), bf16(64, 16, 32), _SLOTS), flops=0, bytes=544),
)
def store(a: Args) -> Work:
    """Copies as many keys and values as there are slots, each to its own.

    In latent attention they are compressed, beside the rotated part of the keys.
    """
    slots = a.tensor("slots")
    pairs = (("key", "key_cache"), ("value", "value_cache"))
    if "latent" in a.values:
        pairs = (("latent", "cache"), ("turned", "cache"))
    given = [_rows(a.tensor(name), slots.numel) for name, _ in pairs]
    kept = (
        fresh(t.shape, a.tensor(cache).dtype) for t, (_, cache) in zip(given, pairs, strict=True)
    )
    return Work(0, (*given, slots), tuple(kept))


def _rows(given: Tensor, most: int) -> Tensor:
    """Return the tensor without the rows of padding, which have no slot."""
    return like(given, (min(most, given.shape[0]), *given.shape[1:])) if given.shape else given


# as above, into a cache of the same type: no argument shows which one
@op(
    *("vllm::unified_kv_cache_update", "vllm::kv_cache_update"),
    signature="Tensor key, Tensor value",
    example=Example((_KEY, _KEY, None), flops=0, bytes=512),
)
# 4 rows of 24 and 8, read and written of 2 bytes
@op(
    "vllm::unified_mla_kv_cache_update",
    signature="Tensor latent, Tensor turned",
    example=Example((bf16(4, 24), bf16(4, 8), None, "auto", None), flops=0, bytes=512),
)
def store_somewhere(a: Args) -> Work:
    """Keys and values, or both in compressed form, copied into a cache of their dtype."""
    names = ("latent", "turned") if "mla" in a.op else ("key", "value")
    given = tuple(a.tensor(name) for name in names)
    return Work(0, given, tuple(map(like, given)))


# 64 read and written of 2 bytes
@op(
    *("_C_cache_ops::cp_gather_cache", "_C_cache_ops::gather_cache"),
    "_C_cache_ops::gather_and_maybe_dequant_cache",
    signature="Tensor cache, Tensor out",
    example=Example((bf16(64, 16, 2, 8), _KEY), flops=0, bytes=256),
)
def load(a: Args) -> Work:
    """Copies cached tokens together; how many of the result's rows are filled is unknown."""
    out = a.tensor("out")
    return Work(0, (fresh(out.shape, a.tensor("cache").dtype),), (out,))


# 4 rows of 24 read of 2 bytes, of 24 of 1 and their 4 scales of 4 written, 4 slots of 8
@op(
    "_C_cache_ops::indexer_k_quant_and_cache",
    signature="Tensor key, Tensor cache, Tensor slots, int group",
    example=Example((bf16(4, 24), u8(64, 16, 28), _SLOTS, 24, "ue8m0"), flops=0, bytes=336),
)
def store_rounded(a: Args) -> Work:
    """Keys of a sparse attention's index, rounded by groups, with a float32 scale each."""
    slots, group = a.tensor("slots"), a.integer("group", 0)
    given = _rows(a.tensor("key"), slots.numel)
    require(group > 0 and not size(given, -1) % group)
    scales = fresh((given.numel // group,), "float32")
    return Work(0, (given, slots), (fresh(given.shape, "float8_e4m3fn"), scales))


# 64 rows of 24 of 1 byte and 64 scales of 4, read and written
@op(
    "_C_cache_ops::cp_gather_indexer_k_quant_cache",
    signature="Tensor cache, Tensor out, Tensor scale",
    example=Example((u8(64, 16, 28), f8(64, 24), u8(64, 4)), flops=0, bytes=3584),
)
def load_rounded(a: Args) -> Work:
    """Rounded keys and their scales, copied together; unfilled rows count, too."""
    out = (a.tensor("out"), a.tensor("scale"))
    return Work(0, tuple(map(like, out)), out)


# 4 rows of 2 heads of 24 and one of 8, which all heads share, read; 2 heads of 32 written, of 2
# bytes
@op(
    *("sgl_kernel::concat_mla_k", "vllm::flashinfer_concat_mla_k"),
    signature="Tensor out, Tensor first, Tensor second",
    example=Example((bf16(4, 2, 32), bf16(4, 2, 24), bf16(4, 1, 8)), flops=0, bytes=960),
)
@op(
    "_C_cache_ops::concat_mla_q",
    signature="Tensor first, Tensor second, Tensor out",
    # two heads of 8 read
    example=Example((bf16(4, 2, 24), bf16(4, 2, 8), bf16(4, 2, 32)), flops=0, bytes=1024),
)
def side_by_side(a: Args) -> Work:
    """The rotated part of each head is appended to the part that is not rotated."""
    first, second, out = (a.tensor(name) for name in ("first", "second", "out"))
    require(size(first, -1) + size(second, -1) == size(out, -1))
    return Work(0, (first, second), (out,))


# 4 rows of 2 heads and a key of 8, turned: 3 * 96; 96 and 4 of 24 read of 2 bytes, 4 of 32 written
# to the cache and 64 in place, 4 slots and 4 positions of 8, 4 rows of 8 of sine and cosine of 2
@op(
    "_C_cache_ops::concat_and_cache_mla_rope_fused",
    signature=(
        "Tensor positions, Tensor query, Tensor key, Tensor latent, Tensor cosines, bool neox,"
        "Tensor slots, Tensor cache"
    ),
    example=Example(
        (
            *(_SLOTS, bf16(4, 2, 8), bf16(4, 8), bf16(4, 24), bf16(64, 8), True, _SLOTS),
            *(bf16(64, 16, 32), "auto", None),
        ),
        flops=288,
        bytes=896,
    ),
)
def turn_and_store(a: Args) -> Work:
    """Rotates parts of queries and keys; puts the keys' part and the latent into the cache."""
    positions, query, key, latent = (
        a.tensor(name) for name in ("positions", "query", "key", "latent")
    )
    slots, cache, table = a.tensor("slots"), a.tensor("cache"), a.tensor("cosines")
    angles = fresh((min(positions.numel, size(table, 0)), size(table, -1)), table.dtype)
    reads = (positions, query, key, latent, angles, slots)
    kept = tuple(fresh(t.shape, cache.dtype) for t in (key, latent))
    return Work(3 * (query.numel + key.numel), reads, (query, *kept))


# 64 and 64 read of 2 bytes, written of 1, two scales of 4 and 4 slots of 8
@op(
    "sgl_kernel::downcast_fp8",
    family="quantization",
    signature=(
        "Tensor key, Tensor value, Tensor key_out, Tensor value_out, Tensor key_scale,"
        "Tensor value_scale, Tensor slots"
    ),
    example=Example(
        (_KEY, _KEY, f8(4, 2, 8), f8(4, 2, 8), f32(1), f32(1), _SLOTS), flops=0, bytes=424
    ),
)
def store_narrow(a: Args) -> Work:
    """Keys and values rounded into buffers; their rounding is not counted, as in caches."""
    key, value, slots = a.tensor("key"), a.tensor("value"), a.tensor("slots")
    scales = a.present("key_scale", "value_scale")
    kept = tuple(
        fresh(t.shape, a.tensor(name).dtype) for t, name in ((key, "key_out"), (value, "value_out"))
    )
    return Work(0, (key, value, *scales, slots), kept)
