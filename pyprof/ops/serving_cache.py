"""Keys and values put into the paged cache of a serving framework, or taken out of it.

Nothing is computed but, in caches of narrow numbers, their rounding, which is not counted. Bytes:
each new key and value read once and written once in the cache's type, and where they go, read once.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "copy"

_KEY, _CACHE = Tensor((4, 2, 8), "bfloat16"), Tensor((64, 16, 2, 8), "float8_e4m3fn")
_SLOTS = Tensor((4,), "int64")


# 64 and 64 read of 2 bytes, written of 1, 4 places of 8
@op(
    *("_C_cache_ops::reshape_and_cache", "_C_cache_ops::reshape_and_cache_flash"),
    *("sglang::store_cache", "sgl_kernel::set_kv_buffer", "aiter::reshape_and_cache"),
    *("aiter::reshape_and_cache_flash", "sglang_profiler::memory_pool__set_kv_buffer_impl"),
    *("vllm::rocm_aiter_reshape_and_cache", "_C_cache_ops::reshape_and_cache_shuffle"),
    signature="Tensor key, Tensor value, Tensor key_cache, Tensor value_cache, Tensor slots",
    example=Call(
        "_C_cache_ops", "reshape_and_cache_flash", (_KEY, _KEY, _CACHE, _CACHE, _SLOTS, "fp8")
    ),
    flops=0,
    bytes=416,
)
def store(a: Args) -> Work:
    """As many keys and values as there are places for, each copied to its own."""
    slots = a.tensor("slots")
    pairs = (("key", "key_cache"), ("value", "value_cache"))
    given = [_rows(a.tensor(name), slots.numel) for name, _ in pairs]
    kept = (
        fresh(t.shape, a.tensor(cache).dtype) for t, (_, cache) in zip(given, pairs, strict=True)
    )
    return Work(0, (*given, slots), tuple(kept))


def _rows(given: Tensor, most: int) -> Tensor:
    """Leave out the rows of padding, which no place is for."""
    return like(given, (min(most, given.shape[0]), *given.shape[1:])) if given.shape else given


# as above, into a cache of the same type: which one it is, no argument says
@op(
    *("vllm::unified_kv_cache_update", "vllm::kv_cache_update"),
    signature="Tensor key, Tensor value",
    example=Call("vllm", "unified_kv_cache_update", (_KEY, _KEY, None)),
    flops=0,
    bytes=512,
)
def store_somewhere(a: Args) -> Work:
    """Keys and values copied into a cache of their type."""
    given = (a.tensor("key"), a.tensor("value"))
    return Work(0, given, tuple(map(like, given)))


# 4 rows of 24 and 8 read of 2 bytes, 4 of 32 written of 2, 4 places of 8
@op(
    *("_C_cache_ops::concat_and_cache_mla", "aiter::concat_and_cache_mla"),
    signature="Tensor latent, Tensor turned, Tensor cache, Tensor slots",
    example=Call(
        "_C_cache_ops",
        "concat_and_cache_mla",
        (
            *(Tensor((4, 24), "bfloat16"), Tensor((4, 8), "bfloat16")),
            *(Tensor((64, 16, 32), "bfloat16"), _SLOTS),
        ),
    ),
    flops=0,
    bytes=544,
)
def store_latent(a: Args) -> Work:
    """The compressed keys and values of a token, and what is turned, side by side."""
    slots = a.tensor("slots")
    given = tuple(_rows(a.tensor(name), slots.numel) for name in ("latent", "turned"))
    dtype = a.tensor("cache").dtype
    return Work(0, (*given, slots), tuple(fresh(t.shape, dtype) for t in given))


# 64 read and written of 2 bytes
@op(
    *("_C_cache_ops::gather_cache", "_C_cache_ops::cp_gather_cache"),
    "_C_cache_ops::gather_and_maybe_dequant_cache",
    signature="Tensor cache, Tensor out",
    example=Call("_C_cache_ops", "cp_gather_cache", (Tensor((64, 16, 2, 8), "bfloat16"), _KEY)),
    flops=0,
    bytes=256,
)
def load(a: Args) -> Work:
    """Cached tokens side by side; how many of the result's rows are filled is not counted."""
    out = a.tensor("out")
    return Work(0, (fresh(out.shape, a.tensor("cache").dtype),), (out,))
