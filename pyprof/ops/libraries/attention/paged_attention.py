"""Attention over paged caches of keys and values: vLLM's, SGLang's and aiter's ops.

In latent attention (MLA) the cache holds compressed keys and values, which all heads share. The
lengths of the requests are those of the serving step. In decode, values are the compressed keys; in
prefill, other ops expand keys and values for each head.
"""

from pyprof.marker import Tensor
from pyprof.marker.serving_steps import Batch, Phase
from pyprof.ops.examples import Example, bf16, f8, f32, i32
from pyprof.ops.libraries.attention.served_requests import (
    EXAMPLE_STEP,
    FULL,
    by_requests,
    check_tokens,
    token_count,
)
from pyprof.ops.model_config import CONTRADICTS
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, CallContext, Work, fresh, has_rank, like, require, size

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

    Until late 2025 latent attention was this op, too: compressed keys, and a separate rotated part.
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
    """Attention over pages of a cache, [.., page, key heads, head] or the page after the heads."""
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


_LATENT, _TURNED, _QUERY = bf16(8, 4, 32), bf16(8, 4, 8), bf16(8, 1, 4, 40)
_LATENTS, _PAGED_LATENTS = bf16(64, 16, 40), bf16(64, 16, 1, 40)
_DECODED = CallContext(batch=Batch(Phase(), Phase(8, 8, 20, 8, 20)))


# 8 tokens of 20 cached in all: 2 * 20 scores, 4 heads of 40 and 32; 8 * 4 * 40 read, 8 * 4 * 32
# written and 20 * 40 cached of 2 bytes
@op(
    *("sgl_kernel::cutlass_mla_decode", "_C::sm100_cutlass_mla_decode", "_C::cutlass_mla_decode"),
    signature=(
        "Tensor out, Tensor latent, Tensor turned, Tensor cache",
        (
            "Tensor out, Tensor total, Tensor latent, Tensor turned, Tensor cache, any lengths,"
            "any pages, any workspace, any scale, any splits"
        ),
    ),
    example=Example((_LATENT, _LATENT, _TURNED, _LATENTS), flops=11520, bytes=6208),
    context=_DECODED,
)
def latent_decode(a: Args) -> Work:
    """Decoding over compressed keys and values, which all heads share: values are keys."""
    latent, turned, cache = a.tensor("latent"), a.tensor("turned"), a.tensor("cache")
    width = size(latent, -1) + size(turned, -1)
    require(size(cache, -1) == width)
    return _latent(a, latent, width, size(latent, -1), cache.dtype)


def _latent(a: Args, q: Tensor, width: int, value_width: int, kept: str | None) -> Work:
    batch, heads = a.batch(), size(q, -2)
    if batch.prefill.requests:
        raise Unknown("the step has prefill: which requests it decodes is not recorded")
    check_tokens(batch, q)
    _check_chosen(a, batch.decode.keys)
    return _decoded(batch.decode, heads, (width, value_width), q.dtype, kept)


def _check_chosen(a: Args, longest: int) -> None:
    """Raise Unknown if the model's attention may leave out some of at most `longest` keys."""
    chosen = a.context.model.keys_chosen if a.context.model is not None else None
    if chosen is not None and longest > chosen:
        raise Unknown(f"of more than {chosen} keys the model's attention sees {chosen}")


def _decoded(
    phase: Phase, heads: int, widths: tuple[int, int], dtype: str | None, kept: str | None
) -> Work:
    """Return the work of queries over compressed keys, which are the values, too."""
    width, value_width = widths
    given = fresh((phase.queries, heads, width), dtype)
    narrow = dtype is not None and dtype.startswith("float8")
    out = fresh((phase.queries, heads, value_width), "bfloat16" if narrow else dtype)
    cached = fresh((phase.keys, width), kept)
    return Work(heads * 2 * phase.products * sum(widths), (given, cached), (out,), via=FULL)


# as above, products before and after it are ops of their own; queries of 24 + 8
@op(
    *("vllm::unified_mla_attention", "vllm::unified_mla_attention_with_output"),
    signature="Tensor query, Tensor latent, Tensor turned, Tensor? out",
    example=Example((_LATENT, bf16(8, 32), bf16(8, 1, 8)), flops=11520, bytes=6208),
    context=_DECODED,
)
def unified_latent(a: Args) -> Work:
    """Attention of a whole step: in prefill, ops inside expand keys and values."""
    q, latent, turned = a.tensor("query"), a.tensor("latent"), a.tensor("turned")
    if not has_rank(q, 3):
        raise Unknown("heads not recorded")
    shared, heads, batch = size(latent, -1), size(q, -2), a.batch()
    _check_model(a, shared, size(turned, -1))
    check_tokens(batch, q)
    _check_chosen(a, max(batch.prefill.keys, batch.decode.keys))
    decoded = _decoded(
        batch.decode, heads, (shared + size(turned, -1), shared), q.dtype, latent.dtype
    )
    if not batch.prefill.requests:
        return decoded
    widths = (size(q, -1), _value_head(a, q))
    width, value_width = widths
    given = fresh((batch.prefill.queries, heads, width), q.dtype)
    out = fresh((batch.prefill.queries, heads, value_width), q.dtype)
    expanded = fresh((batch.prefill.keys, heads, width + value_width), q.dtype)
    scores = 2 * batch.prefill.products - batch.prefill.queries_squared
    prefilled = Work(heads * scores * sum(widths), (given, expanded), (out,), via=FULL)
    return decoded + prefilled


def _value_head(a: Args, q: Tensor) -> int:
    """Return the width of a head's values: the result's, else the model's."""
    out = a.optional("out")
    if out is not None and (rows := size(q, 0) * size(q, -2)) and not out.numel % rows:
        return out.numel // rows
    width = a.model("width of a head's values").value_head
    if width is None:
        raise Unknown("config.json does not state v_head_dim")
    return width


def _check_model(a: Args, shared: int, turned: int) -> None:
    """Raise Unknown if the recorded widths cannot be the model's."""
    model = a.context.model
    if model is None:
        return
    pairs = ((model.latent, shared, "kv_lora_rank"), (model.turned, turned, "qk_rope_head_dim"))
    for stated, recorded, name in pairs:
        if stated is not None and stated != recorded:
            raise Unknown(f"{CONTRADICTS}: {name} {stated}, recorded {recorded}")


_KVCACHE = (
    "int value_width, Tensor lengths, Tensor block_table, float scale, bool is_causal, any plan,"
    "any splits"
)


# as above: 8 requests of one token each
@op(
    *("sgl_kernel::fwd_kvcache_mla", "_flashmla_C::fwd_kvcache_mla"),
    signature=(
        f"Tensor query, Tensor cache, {_KVCACHE}, any narrow, Tensor? indices",
        f"Tensor query, Tensor cache, any second, {_KVCACHE}",
    ),
    example=Example(
        (_QUERY, _PAGED_LATENTS, 32, _LENGTHS, _TABLE, 0.1, True, _TABLE, _LENGTHS, False, None),
        flops=11520,
        bytes=6208,
    ),
    context=_DECODED,
)
@op(
    "flash_mla::fwd_kvcache_mla",
    signature=f"Tensor query, Tensor cache, any second, {_KVCACHE}",
    example=Example(
        (_QUERY, _PAGED_LATENTS, None, 32, _LENGTHS, _TABLE, 0.1, True, _TABLE, _LENGTHS, True),
        flops=11520,
        bytes=6208,
    ),
    context=_DECODED,
)
@op(
    "_flashmla_extension_C::fwd_kvcache_mla_fp8",
    signature=f"Tensor query, Tensor cache, {_KVCACHE}",
    # 1280 + 800 of 1 byte, 1024 written of 2
    example=Example(
        (
            *(f8(8, 1, 4, 40), f8(64, 16, 1, 40), 32, _LENGTHS, _TABLE, 0.1, True, _TABLE),
            *(_LENGTHS,) * 3,
        ),
        flops=11520,
        bytes=4128,
    ),
    context=_DECODED,
)
def flash_mla(a: Args) -> Work:
    """FlashMLA's decoding over all keys, or over those whose indices are given."""
    q, cache = a.tensor("query"), a.tensor("cache")
    value_width = a.integer("value_width", 0)
    require(0 < value_width <= size(q, -1))
    if (indices := a.optional("indices")) is not None:
        return _chosen(q, cache, indices, value_width)
    require(size(cache, -1) == size(q, -1))
    return _latent(a, q, size(q, -1), value_width, cache.dtype)


def _chosen(q: Tensor, cache: Tensor, indices: Tensor, value_width: int) -> Work:
    """Return the work over as many keys as a query has indices; those of -1 are computed, too."""
    keys, width = size(indices, -1), size(q, -1)
    out = like(q, (*q.shape[:-1], value_width))
    count = min(cache.numel, token_count(q) * keys * size(cache, -1))
    flops = 2 * q.numel // max(1, width) * keys * (width + value_width)
    return Work(flops, (q, fresh((count,), cache.dtype), indices), (out,))


# 2 tokens of 4 heads over 8 keys each: 2 * 8 * 8 * (40 + 32); 320 and 16 rows of 40 read of 2
# bytes, 16 indices of 4, 256 written of 2
@op(
    *("sgl_kernel::sparse_prefill_fwd", "_flashmla_C::sparse_prefill_fwd"),
    signature="Tensor query, Tensor cache, Tensor indices, float scale, int value_width",
    example=Example(
        (bf16(2, 4, 40), bf16(64, 1, 40), i32(2, 1, 8), 0.1, 32), flops=9216, bytes=2496
    ),
)
def sparse_prefill(a: Args) -> Work:
    """FlashMLA's attention over the keys whose indices are given for each token."""
    q, cache = a.tensor("query"), a.tensor("cache")
    return _chosen(q, cache, a.tensor("indices"), a.integer("value_width", 0))
