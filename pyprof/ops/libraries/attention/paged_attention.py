"""Attention over paged caches of keys and values: vLLM's, SGLang's and aiter's ops."""

from __future__ import annotations

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f32, i32
from pyprof.ops.libraries.attention.latent_attention import unified_latent
from pyprof.ops.libraries.attention.served_requests import EXAMPLE_STEP, by_requests
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, has_rank, like, size

FAMILY = "attention"

_Q, _K, _PAGES = bf16(8, 4, 16), bf16(8, 2, 16), bf16(64, 16, 2, 16)
_TABLE, _LENGTHS = i32(2, 4), i32(2)


# 6 new tokens of 8 and 2 of two requests with 10: twice the scores 2 * 48 - 36 + 2 * 10 = 80, times
# 4 heads of 16 + 16; 512 and 512 elements of queries and result, 18 tokens of 2 heads of 32, of 2
# bytes
@op(
    *("vllm::unified_attention_with_output", "vllm::unified_attention"),
    *("sglang::unified_attention_with_output", "vllm::unified_attention_with_output_impl"),
    signature="Tensor query, Tensor key, Tensor value, Tensor? out",
    example=Example((_Q, _K, _K, _Q, None), flops=10240, bytes=4352),
    context=EXAMPLE_STEP,
)
def unified(a: Args) -> Work:
    """Attention of the new tokens over all that is cached of their requests.

    Until late 2025 latent attention was this op, too: compressed keys, and a part turned apart.
    """
    q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
    if has_rank(k, 2) and has_rank(v, 3) and v.shape[1] == 1:
        return unified_latent(a.replaced(latent=k, turned=v))
    if not has_rank(q, 3) or not has_rank(k, 3):
        q, k, v = (
            _split(a, t, name) for t, name in ((q, "heads"), (k, "key_heads"), (v, "key_heads"))
        )
    return by_requests(a, q, size(k, -2), size(v, -1), k.dtype)


def _split(a: Args, given: Tensor, heads: str) -> Tensor:
    """Return [tokens, heads, head] of a tensor [tokens, heads * head], by the model's head size."""
    width = a.model("head size").head_size
    if width is None or not has_rank(given, 2) or given.shape[-1] % width:
        raise Unknown(f"{heads} not recorded")
    return like(given, (given.shape[0], given.shape[-1] // width, width))


_CACHED = "Tensor query, Tensor key_cache, Tensor value_cache"


@op(
    *("aiter::paged_attention_ragged", "sglang_profiler::attention_paged_attention_ragged"),
    "aiter::paged_attention_v1",
    signature=f"Tensor out, Tensor workspace, {_CACHED}",
    example=Example((_Q, _LENGTHS, _Q, _PAGES, _PAGES), flops=10240, bytes=4352),
    context=EXAMPLE_STEP,
)
@op(
    "_C::paged_attention_v1",
    signature=f"Tensor out, {_CACHED}, int key_heads",
    example=Example((_Q, _Q, _PAGES, _PAGES, 2), flops=10240, bytes=4352),
    context=EXAMPLE_STEP,
)
@op(
    *("_C::paged_attention_v2", "_rocm_C::paged_attention", "aiter::paged_attention_rocm"),
    signature=f"Tensor out, Tensor sums, Tensor largest, Tensor partial, {_CACHED}, int key_heads",
    example=Example((_Q, _Q, _Q, _Q, _Q, _PAGES, _PAGES, 2), flops=10240, bytes=4352),
    context=EXAMPLE_STEP,
)
@op(
    *("aiter::pa_fwd_asm", "aiter::pa_fwd_naive"),
    signature=_CACHED,
    example=Example((_Q, _PAGES, _PAGES, _TABLE, _LENGTHS), flops=10240, bytes=4352),
    context=EXAMPLE_STEP,
)
def paged(a: Args) -> Work:
    """Attention over pages of a cache, [.., page, key heads, head] or the page behind the heads."""
    q, cache = a.tensor("query"), a.tensor("key_cache")
    heads = a.integer("key_heads", 0) if a.known("key_heads") else 0
    return by_requests(a, q, heads or key_heads(q, cache), size(q, -1), cache.dtype)


def key_heads(q: Tensor, cache: Tensor) -> int:
    """Return the heads of cached keys, [.., heads, head] or [pages, heads, ..]."""
    if size(cache, -1) == size(q, -1):
        return size(cache, -2)
    return size(cache, 1)


_STATES = bf16(8, 4, 16)
_SUMS = f32(8, 4)


# 512 outputs: two products and their sum; two of 512 read, one written of 2 bytes, two of 32
# sums read and one written of 4
@op(
    *("sgl_kernel::merge_state_v2", "sgl_kernel::merge_state"),
    signature="Tensor first, Tensor sum_a, Tensor second, Tensor sum_b, Tensor out, Tensor total",
    example=Example((_STATES, _SUMS, _STATES, _SUMS, _STATES, _SUMS), flops=1536, bytes=3456),
)
@op(
    "_C::merge_attn_states",
    signature="Tensor out, Tensor? total, Tensor first, Tensor sum_a, Tensor second, Tensor sum_b",
    example=Example((_STATES, _SUMS, _STATES, _SUMS, _STATES, _SUMS), flops=1536, bytes=3456),
)
def merged(a: Args) -> Work:
    """Two parts of one attention, weighed by the sums of their scores' exponentials."""
    parts = tuple(a.tensor(name) for name in ("first", "sum_a", "second", "sum_b"))
    out = a.tensor("out")
    return Work(3 * out.numel, parts, (out, *a.present("total")))
