"""Attention of serving and training libraries: over paged caches of keys and values, and packed.

Over a cache the lengths stand in no argument. Where the range around a serving step states their
sums, the work is exact: 2 (D + Dv) operations a score and head, and of scores Nq Nk less Nq^2 / 2
of requests in prefill, Nq Nk of those in decode (see `marker.batch`). Bytes: queries read and the
result written once, keys and values of all cached tokens read once. A sliding window makes both
less; the call, or the model's configuration, has to say so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker.batch import Batch, Phase
from pyprof.ops.examples import Example, bf16, f8, f32, i32, i64
from pyprof.ops.model_config import CONTRADICTS, LAYER_TYPES
from pyprof.ops.registry import op
from pyprof.ops.signature import MISSING, Unknown
from pyprof.ops.torch.nn.attention import Band, fused
from pyprof.ops.work import Args, Setting, Work, fresh, has_rank, like, require, size

if TYPE_CHECKING:
    from pyprof.marker import Tensor

FAMILY = "attention"

_Q, _K = bf16(8, 4, 16), bf16(8, 2, 16)
_PAGES = bf16(64, 16, 2, 16)
_TABLE, _LENGTHS = i32(2, 4), i32(2)
_PACKED, _STARTS = bf16(16, 4, 16), i32(3)
_FLASH, _HEADS = bf16(2, 8, 4, 16), bf16(2, 4, 8, 16)
_SERVED = Setting(batch=Batch(Phase(1, 6, 8, 36, 48), Phase(2, 2, 10, 2, 10)))
FULL = "requests of the step's range, all keys seen"
"""What a cost rests on that a window, of which nothing is recorded, would make less."""
_WINDOWED = "requests of the step's range, the keys of a window seen"
_EQUAL = "requests of equal length without cached keys, the only ones of these sizes"


def _window(a: Args) -> int | None:
    """Give how many keys before its own a query sees, where the call says so; None for all."""
    value = a.values.get("window_size_left")
    return value if type(value) is int and value >= 0 else None


def _says_window(a: Args) -> bool:
    value = a.values.get("window_size_left", MISSING)
    return type(value) is int


def _seen_window(a: Args, longest: int) -> int | None:
    """Return how many keys before its own a query sees, None for all of at most `longest`.

    The call says so, else the model's configuration. Raises Unknown if it leaves open which layers
    have its window.
    """
    window, model = _window(a), a.setting.model
    if window is None and not _says_window(a) and model is not None and model.window is not None:
        if longest <= model.window:
            return None
        layer = a.setting.layer
        if model.windowed is None or layer is None:
            which = f"which layers have the model's window of {model.window} keys not"
            stated = f"stated: {LAYER_TYPES}" if model.windowed is None else "recorded"
            raise Unknown(f"{which} {stated}")
        window = model.window - 1 if model.windowed[layer] else None
    return window if window is not None and longest > window else None


def _within(window: int, batch: Batch) -> Batch:
    """Return the work that a window leaves of a batch.

    Raises Unknown for a phase of several requests: how long each is, sums do not tell.
    """
    return Batch(
        _phase_within(window, batch.prefill, causal=True),
        _phase_within(window, batch.decode, causal=False),
    )


def _phase_within(window: int, phase: Phase, *, causal: bool) -> Phase:
    """Return a phase whose sums give the scores and the keys within the window."""
    if phase.keys <= window:
        return phase
    if phase.requests != 1:
        raise Unknown("lengths of the requests within a sliding window not recorded")
    queries = phase.queries
    keys = min(phase.keys, queries + window)
    if causal:
        twice = Band(window, 0, from_end=True).seen(queries, phase.keys)
    else:
        twice = 2 * queries * min(phase.keys, window + 1)
    squared = twice % 2  # keeps the half of an odd area
    return Phase(1, queries, keys, squared if causal else 0, (twice + squared) // 2)


def _by_requests(a: Args, q: Tensor, key_heads: int, value_width: int, kept: str | None) -> Work:
    """Give the work for the requests of the step, of queries [tokens, heads, head].

    `kept` is the type of cached keys and values.
    """
    heads, width = size(q, -2), size(q, -1)
    require(key_heads and not heads % key_heads)
    equal = None if a.setting.batch is not None else _of_equal_length(a, q)
    batch = equal or a.batch()
    tokens = q.numel // max(1, heads * width)
    if batch.queries > tokens:
        raise Unknown("the step's range states more tokens than the op was given")
    window = _seen_window(a, max(batch.prefill.keys, batch.decode.keys))
    seen = batch if window is None else _within(window, batch)
    out = fresh((batch.queries, heads, value_width), q.dtype)
    cached = fresh((seen.keys, key_heads, width + value_width), kept)
    params: dict[str, object] = {"H": heads, "Hk": key_heads, "D": width, "Dv": value_width}
    params |= {"Nq": batch.queries, "Nk": batch.keys} | ({"type": q.dtype} if q.dtype else {})
    params |= {"window": window} if window is not None else {}
    flops = heads * seen.twice_scores * (width + value_width)
    given = fresh((batch.queries, heads, width), q.dtype)
    via = _EQUAL if equal else _WINDOWED if window is not None else FULL
    return Work(flops, (given, cached), (out,), params, via=via)


def _of_equal_length(a: Args, q: Tensor) -> Batch | None:
    """Give the requests of a causal call where its sizes leave but one possibility; else None.

    As many tokens as requests times the longest: all are the longest. No key beyond the longest
    query's place: nothing was cached before.
    """
    starts, longest = a.optional("cum_seq_q"), a.values.get("max_q")
    if starts is None or len(starts.shape) != 1 or type(longest) is not int:
        return None
    count = starts.numel - 1
    tokens = q.numel // max(1, size(q, -2) * size(q, -1))
    if count < 1 or longest < 1 or count * longest != tokens or not _is_causal(a):
        return None
    if _reach(a) != longest:
        return None
    square = count * longest * longest
    return Batch(Phase(count, tokens, tokens, square, square), Phase())


def _is_causal(a: Args) -> bool:
    return a.values.get("is_causal") is True


def _reach(a: Args) -> int | None:
    """Give how many keys the longest request has at most: as stated, else what its pages hold."""
    stated = a.values.get("max_k")
    if type(stated) is int and stated > 0:
        return stated
    table, cache = a.optional("block_table"), a.optional("key")
    if table is None or cache is None or not (has_rank(table, 2) and has_rank(cache, 4)):
        return None
    return table.shape[1] * cache.shape[1]


# 6 new tokens of 8 and 2 of two requests with 10: twice the scores 2 * 48 - 36 + 2 * 10 = 80, times
# 4 heads of 16 + 16; 512 and 512 elements of queries and result, 18 tokens of 2 heads of 32, of 2
# bytes
@op(
    *("vllm::unified_attention", "vllm::unified_attention_with_output"),
    *("sglang::unified_attention_with_output", "vllm::unified_attention_with_output_impl"),
    signature="Tensor query, Tensor key, Tensor value, Tensor? out",
    example=Example(
        (_Q, _K, _K, _Q, None), flops=10240, bytes=4352, op="unified_attention_with_output"
    ),
    setting=_SERVED,
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
    return _by_requests(a, q, size(k, -2), size(v, -1), k.dtype)


def _split(a: Args, given: Tensor, heads: str) -> Tensor:
    """Give [tokens, heads, head] of a tensor [tokens, heads * head], by the model's head size."""
    width = a.model("head size").head_size
    if width is None or not has_rank(given, 2) or given.shape[-1] % width:
        raise Unknown(f"{heads} not recorded")
    return like(given, (given.shape[0], given.shape[-1] // width, width))


_CACHED = "Tensor query, Tensor key_cache, Tensor value_cache"


@op(
    *("sglang_profiler::attention_paged_attention_ragged", "aiter::paged_attention_ragged"),
    "aiter::paged_attention_v1",
    signature=f"Tensor out, Tensor workspace, {_CACHED}",
    example=Example(
        (_Q, _LENGTHS, _Q, _PAGES, _PAGES),
        flops=10240,
        bytes=4352,
        op="paged_attention_ragged",
        mod="aiter",
    ),
    setting=_SERVED,
)
@op(
    "_C::paged_attention_v1",
    signature=f"Tensor out, {_CACHED}, int key_heads",
    example=Example((_Q, _Q, _PAGES, _PAGES, 2), flops=10240, bytes=4352),
    setting=_SERVED,
)
@op(
    *("_C::paged_attention_v2", "_rocm_C::paged_attention", "aiter::paged_attention_rocm"),
    signature=f"Tensor out, Tensor sums, Tensor largest, Tensor partial, {_CACHED}, int key_heads",
    example=Example((_Q, _Q, _Q, _Q, _Q, _PAGES, _PAGES, 2), flops=10240, bytes=4352),
    setting=_SERVED,
)
@op(
    *("aiter::pa_fwd_asm", "aiter::pa_fwd_naive"),
    signature=_CACHED,
    example=Example((_Q, _PAGES, _PAGES, _TABLE, _LENGTHS), flops=10240, bytes=4352),
    setting=_SERVED,
)
def paged(a: Args) -> Work:
    """Attention over pages of a cache, [.., page, key heads, head] or the page behind the heads."""
    q, cache = a.tensor("query"), a.tensor("key_cache")
    heads = a.integer("key_heads", 0) if a.known("key_heads") else 0
    return _by_requests(a, q, heads or _key_heads(q, cache), size(q, -1), cache.dtype)


def _key_heads(q: Tensor, cache: Tensor) -> int:
    """Tell the heads of cached keys from [.., heads, head], else from [pages, heads, ..]."""
    if size(cache, -1) == size(q, -1):
        return size(cache, -2)
    return size(cache, 1)


_FA3 = (
    "Tensor query, Tensor key, Tensor value, Tensor? new_key, Tensor? new_value, Tensor? query_v,"
    "Tensor? out, Tensor? cum_seq_q, Tensor? cum_seq_k, Tensor? cum_new, Tensor? seqused_q,"
    "Tensor? seqused_k, int max_q, int max_k, Tensor? block_table, any batch_idx, any leftpad,"
    "any cosine, any sine, any lengths, any q_scale, any k_scale, any v_scale, float scale,"
    "bool is_causal, int window_size_left, int window_size_right"
)
_FA2_VARLEN = (
    "Tensor query, Tensor key, Tensor value, Tensor? out, Tensor? cum_seq_q, Tensor? cum_seq_k,"
    "Tensor? seqused_k, any leftpad, Tensor? block_table, any alibi, int max_q, int max_k,"
    "float dropout_p, float scale, any zeros, bool is_causal, int window_size_left,"
    "int window_size_right"
)
_QKV = "Tensor query, Tensor key, Tensor value"
_VARLEN = "Tensor? cum_seq_q, Tensor? cum_seq_k"
_WINDOWS = "int window_size_left, int window_size_right"


# two sequences of 8, 2 * 4 heads of 8 * 8 scores, half of them, times 2 * (16 + 16); q, k, v and
# the result of 1024 elements of 2 bytes
@op(
    *("flash_attn_3::_flash_attn_forward", "flash_attn_3::fwd", "_vllm_fa3_C::fwd"),
    "sgl_kernel::fwd",
    signature=_FA3,
    example=Example(
        (_FLASH, _FLASH, _FLASH, *(None,) * 20, 0.25, True, -1, -1), flops=16384, bytes=8192
    ),
    setting=_SERVED,
)
@op(
    "_vllm_fa2_C::varlen_fwd",
    signature=_FA2_VARLEN,
    example=Example(
        (
            *(_PACKED, _PACKED, _PACKED, None, _STARTS, _STARTS, None, None, None, None, 8, 8),
            *(0.0, 0.25, False, True, -1, -1),
        ),
        flops=16384,
        bytes=8192,
    ),
    setting=_SERVED,
)
@op(
    *("aiter::mha_fwd", "aiter::fmha_v3_fwd", "flash_attn_2_cuda::fwd"),
    signature=f"{_QKV}, float dropout_p, float scale, bool is_causal, {_WINDOWS}",
    example=Example((_FLASH, _FLASH, _FLASH, 0.0, 0.25, True, -1, -1), flops=16384, bytes=8192),
)
@op(
    *("aiter::mha_varlen_fwd", "aiter::fmha_v3_varlen_fwd"),
    signature=(
        f"{_QKV}, {_VARLEN}, int max_q, int max_k, int min_q, float dropout_p, float scale,"
        f"float cap, bool zeros, bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (
            *(_PACKED, _PACKED, _PACKED, _STARTS, _STARTS, 8, 8, 0, 0.0, 0.25, 0.0, False),
            *(True, -1, -1),
        ),
        flops=16384,
        bytes=8192,
    ),
    setting=_SERVED,
)
@op(
    "xformers_flash::flash_fwd",
    signature=(
        (
            f"{_QKV}, {_VARLEN}, Tensor? seqused_k, int max_q, int max_k, float dropout_p,"
            f"float scale, bool is_causal, {_WINDOWS}, any returned, Tensor? block_table"
        ),
        (
            f"{_QKV}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
            "bool is_causal, any returned"
        ),
        (
            f"{_QKV}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
            "bool is_causal, int window_size, any returned"
        ),
    ),
    example=Example(
        (
            *(_PACKED, _PACKED, _PACKED, _STARTS, _STARTS, None, 8, 8, 0.0, 0.25, True, -1, -1),
            False,
        ),
        flops=16384,
        bytes=8192,
    ),
)
@op(
    "xformers_flash3::flash_fwd",
    signature=(
        f"{_QKV}, {_VARLEN}, Tensor? seqused_k, any leftpad, int max_q, int max_k, float dropout_p,"
        "float scale, bool is_causal, any q_scale, any k_scale, any v_scale, Tensor? block_table,"
        f"any splits, {_WINDOWS}"
    ),
    example=Example(
        (
            *(_PACKED, _PACKED, _PACKED, _STARTS, _STARTS, None, None, 8, 8, 0.0, 0.25, True),
            *(None, None, None, None, False, -1, -1),
        ),
        flops=16384,
        bytes=8192,
    ),
)
@op(
    "aiter::mha_batch_prefill",
    signature=(
        f"{_QKV}, Tensor cum_seq_q, Tensor pages, Tensor block_table, int max_q, int max_k,"
        f"float dropout_p, float scale, float cap, bool zeros, bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (_PACKED, _PAGES, _PAGES, _STARTS, _STARTS, _TABLE, 8, 8, 0.0, 0.25, 0.0, False, True),
        flops=10240,
        bytes=4352,
    ),
    setting=_SERVED,
)
def flash(a: Args) -> Work:
    """Flash attention: of a batch, of packed sequences, or over a paged cache."""
    if _given(a, "block_table") or _given(a, "seqused_k"):
        q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
        return _by_requests(a, q, _key_heads(q, k), _value_width(q, v), k.dtype)
    work = fused(a, heads_at=-2, backward=False, from_end=True)
    if work.flops is None and a.setting.batch is not None and a.values.get("is_causal") is True:
        q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
        return _by_requests(a, q, size(k, -2), size(v, -1), k.dtype)
    return work


def _given(a: Args, name: str) -> bool:
    return (tensor := a.optional(name)) is not None and tensor.shape not in ((), (0,))


def _value_width(q: Tensor, v: Tensor) -> int:
    """Tell a value's width: the last dimension, where pages do not lie in an order of their own."""
    return size(v, -1) if not has_rank(v, 5, or_more=True) else size(q, -1)


_GRADIENTS = "Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor? out, Tensor? lse"
_GIVEN_GRADS = "Tensor? dq, Tensor? dk, Tensor? dv"
_XFORMERS = (
    f"{_GRADIENTS.replace('Tensor grad', 'Tensor! grad')}, {_GIVEN_GRADS}, {_VARLEN}, int max_q,"
    "int max_k, float dropout_p, float scale, bool is_causal"
)
_XFORMERS_NEW = (
    f"bool shared, {_GRADIENTS}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
    f"bool is_causal, {_WINDOWS}, any rng"
)
_GO = (_FLASH, _FLASH, _FLASH, _FLASH, _FLASH, f32(2, 4, 8))
_GO_PACKED = (_PACKED, _PACKED, _PACKED, _PACKED, _PACKED, f32(4, 16))


# five products of half of 16384: 40960; go, q, k, v, out read, dq, dk, dv written
@op(
    "flash_attn_3::_flash_attn_backward",
    signature=(
        f"{_GRADIENTS}, {_VARLEN}, any used_q, any used_k, int max_q, int max_k, Tensor? dq,"
        f"Tensor? dk, Tensor? dv, float scale, bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (*_GO, *(None,) * 6, _FLASH, _FLASH, _FLASH, 0.25, True, -1, -1), flops=40960, bytes=16384
    ),
)
@op(
    "flash_attn::_flash_attn_varlen_backward",
    signature=(
        f"{_GRADIENTS}, Tensor? dq, Tensor? dk, Tensor? dv, {_VARLEN}, int max_q, int max_k,"
        f"float dropout_p, float scale, bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (
            *(*_GO_PACKED, _PACKED, _PACKED, _PACKED, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True),
            *(-1, -1),
        ),
        flops=40960,
        bytes=16384,
    ),
)
@op(
    *("aiter::mha_bwd", "aiter::fmha_v3_bwd"),
    signature=f"{_GRADIENTS}, float dropout_p, float scale, bool is_causal, {_WINDOWS}",
    example=Example((*_GO, 0.0, 0.25, True, -1, -1), flops=40960, bytes=16384),
)
@op(
    *("aiter::mha_varlen_bwd", "aiter::fmha_v3_varlen_bwd"),
    signature=(
        f"{_GRADIENTS}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale, bool zeros,"
        f"bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (*_GO_PACKED, _STARTS, _STARTS, 8, 8, 0.0, 0.25, False, True, -1, -1),
        flops=40960,
        bytes=16384,
    ),
)
@op(
    "aiter::_flash_attn_backward",
    signature=(
        f"{_GRADIENTS}, {_GIVEN_GRADS}, any dbias, float dropout_p, float scale, bool is_causal,"
        f"{_WINDOWS}"
    ),
    example=Example(
        (*_GO, _FLASH, _FLASH, _FLASH, None, 0.0, 0.25, True, -1, -1, None, None, False),
        flops=40960,
        bytes=16384,
    ),
)
@op(
    "xformers_flash::flash_bwd",
    signature=(
        # older versions were given the gradients, and the oldest no window
        f"{_XFORMERS}, {_WINDOWS}, any rng",
        f"{_XFORMERS}, int window_size, any rng",
        f"{_XFORMERS}, any rng",
        _XFORMERS_NEW,
        f"{_XFORMERS_NEW}, any unpadded",
    ),
    example=Example(
        (False, *_GO_PACKED, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True, -1, -1, i64(2)),
        flops=40960,
        bytes=16384,
    ),
)
@op(
    "xformers_flash3::flash_bwd",
    signature=(
        f"bool shared, {_GRADIENTS}, {_VARLEN}, int max_q, int max_k, float scale,"
        f"bool is_causal, {_WINDOWS}"
    ),
    example=Example(
        (False, *_GO_PACKED, _STARTS, _STARTS, 8, 8, 0.25, True, -1, -1), flops=40960, bytes=16384
    ),
)
def flash_backward(a: Args) -> Work:
    """The gradients of queries, keys and values, the scores computed again."""
    return fused(a, heads_at=-2, backward=True, from_end=True)


# 4 heads of an image's 16 parts, 16 * 16 scores times 2 * (16 + 16); q, k, v and the result of 1024
# of 2 bytes
@op(
    "vllm::flash_attn_maxseqlen_wrapper",
    signature=(
        f"{_QKV}, int batch, bool amd, int version, float scale, Tensor? cum_seq_q,Tensor? max_q"
    ),
    example=Example(
        (*(bf16(1, 16, 4, 16),) * 3, 1, False, 2, 0.25, i32(2), i32()), flops=65536, bytes=8192
    ),
)
def of_images(a: Args) -> Work:
    """Attention of a model's part for images, no key left out: of one image, or equal ones."""
    starts = a.optional("cum_seq_q")
    one = starts is None or starts.shape == (2,)
    return fused(a.replaced(cum_seq_q=None, is_causal=False) if one else a, heads_at=-2,
                 backward=False)  # fmt: skip


# two batches of 4 heads, 8 * 8 scores, half of them, times 2 * (16 + 16); four of 1024 of 2 bytes
@op(
    "xformers::efficient_attention_forward_cutlass",
    signature=(
        (
            f"{_QKV}, Tensor? attn_mask, {_VARLEN}, int max_q, int max_k, float dropout_p,"
            "int custom_mask_type, bool computes_lse, float scale, Tensor? seqused_k,"
            "int window_size"
        ),
        # older versions, which took one length or none
        (
            f"{_QKV}, Tensor? attn_mask, {_VARLEN}, int max_q, float dropout_p, bool computes_lse,"
            "int custom_mask_type, float scale, Tensor? seqused_k, int window_size"
        ),
        f"{_QKV}, {_VARLEN}, int max_q, bool computes_lse, bool is_causal",
        f"{_QKV}, bool computes_lse, bool is_causal",
    ),
    example=Example(
        (_FLASH, _FLASH, _FLASH, *(None,) * 5, 0.0, 1, False, None, None, None),
        flops=16384,
        bytes=8192,
    ),
)
def cutlass(a: Args) -> Work:
    """XFormers' memory-efficient kernel."""
    return fused(a, heads_at=-2, backward=False)


# two batches of 4 heads, 8 * 8 scores times 2 * (16 + 16); q, k, v, the bias's parts and the result
# of 1024 elements of 2 bytes
@op(
    "customflash::custom_flash_aligned",
    signature=f"{_QKV}, Tensor bias",
    example=Example(((_HEADS,) * 4), flops=32768, bytes=10240),
)
def with_decomposed_bias(a: Args) -> Work:
    """Segment Anything's kernel: a bias of rows and columns of an image, added to the scores."""
    work = fused(a, heads_at=-3, backward=False)
    return replace(work, reads=(*work.reads, a.tensor("bias")))


_LATENT, _TURNED = bf16(8, 4, 32), bf16(8, 4, 8)
_LATENTS = bf16(64, 16, 40)
_DECODED = Setting(batch=Batch(Phase(), Phase(8, 8, 20, 8, 20)))


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
    setting=_DECODED,
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
    _check_tokens(batch, q)
    _check_chosen(a, batch.decode.keys)
    return _decoded(batch.decode, heads, (width, value_width), q.dtype, kept)


def _check_tokens(batch: Batch, q: Tensor) -> None:
    if batch.queries > q.numel // max(1, size(q, -2) * size(q, -1)):
        raise Unknown("the step's range states more tokens than the op was given")


def _check_chosen(a: Args, longest: int) -> None:
    """Raise Unknown where the model's attention may leave out keys, of at most `longest`."""
    chosen = a.setting.model.keys_chosen if a.setting.model is not None else None
    if chosen is not None and longest > chosen:
        raise Unknown(f"of more than {chosen} keys the model's attention sees {chosen}")


def _decoded(
    phase: Phase, heads: int, widths: tuple[int, int], dtype: str | None, kept: str | None
) -> Work:
    """Give the work of queries over compressed keys, which all heads share, and are values."""
    width, value_width = widths
    given = fresh((phase.queries, heads, width), dtype)
    out = fresh((phase.queries, heads, value_width), _result_type(dtype))
    cached = fresh((phase.keys, width), kept)
    return Work(heads * 2 * phase.products * sum(widths), (given, cached), (out,), via=FULL)


def _result_type(dtype: str | None) -> str | None:
    """Give the type of a result: narrow queries have one of 16 bits."""
    return "bfloat16" if dtype is not None and dtype.startswith("float8") else dtype


def _prefilled(phase: Phase, heads: int, widths: tuple[int, int], dtype: str | None) -> Work:
    """Give the work of queries over keys and values that are made whole for each head."""
    width, value_width = widths
    given = fresh((phase.queries, heads, width), dtype)
    out = fresh((phase.queries, heads, value_width), dtype)
    expanded = fresh((phase.keys, heads, width + value_width), dtype)
    scores = 2 * phase.products - phase.queries_squared
    return Work(heads * scores * sum(widths), (given, expanded), (out,), via=FULL)


# as above, what is multiplied before and behind it being ops of their own; queries of 24 + 8
@op(
    *("vllm::unified_mla_attention", "vllm::unified_mla_attention_with_output"),
    signature="Tensor query, Tensor latent, Tensor turned, Tensor? out",
    example=Example((_LATENT, bf16(8, 32), bf16(8, 1, 8)), flops=11520, bytes=6208),
    setting=_DECODED,
)
def unified_latent(a: Args) -> Work:
    """Attention of a whole step: in prefill keys and values are made whole by ops inside."""
    q, latent, turned = a.tensor("query"), a.tensor("latent"), a.tensor("turned")
    if not has_rank(q, 3):
        raise Unknown("heads not recorded")
    shared, heads, batch = size(latent, -1), size(q, -2), a.batch()
    _check_model(a, shared, size(turned, -1))
    _check_tokens(batch, q)
    _check_chosen(a, max(batch.prefill.keys, batch.decode.keys))
    decoded = _decoded(
        batch.decode, heads, (shared + size(turned, -1), shared), q.dtype, latent.dtype
    )
    if not batch.prefill.requests:
        return decoded
    widths = (size(q, -1), _value_head(a, q))
    return decoded + _prefilled(batch.prefill, heads, widths, q.dtype)


def _value_head(a: Args, q: Tensor) -> int:
    """Give the width of a head's values: that of the result, else the model's."""
    out = a.optional("out")
    if out is not None and (rows := size(q, 0) * size(q, -2)) and not out.numel % rows:
        return out.numel // rows
    width = a.model("width of a head's values").value_head
    if width is None:
        raise Unknown("--model-config does not state v_head_dim")
    return width


def _check_model(a: Args, shared: int, turned: int) -> None:
    """Raise Unknown where recorded widths cannot be the model's."""
    model = a.setting.model
    if model is None:
        return
    pairs = ((model.latent, shared, "kv_lora_rank"), (model.turned, turned, "qk_rope_head_dim"))
    for stated, recorded, name in pairs:
        if stated is not None and stated != recorded:
            raise Unknown(f"{CONTRADICTS}: {name} {stated}, recorded {recorded}")


_PAGED_LATENTS = bf16(64, 16, 1, 40)
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
        (
            *(bf16(8, 1, 4, 40), _PAGED_LATENTS, 32, _LENGTHS, _TABLE, 0.1, True, _TABLE),
            *(_LENGTHS, False, None),
        ),
        flops=11520,
        bytes=6208,
    ),
    setting=_DECODED,
)
@op(
    "flash_mla::fwd_kvcache_mla",
    signature=f"Tensor query, Tensor cache, any second, {_KVCACHE}",
    example=Example(
        (
            *(bf16(8, 1, 4, 40), _PAGED_LATENTS, None, 32, _LENGTHS, _TABLE, 0.1, True, _TABLE),
            *(_LENGTHS, True),
        ),
        flops=11520,
        bytes=6208,
    ),
    setting=_DECODED,
)
@op(
    "_flashmla_extension_C::fwd_kvcache_mla_fp8",
    signature=f"Tensor query, Tensor cache, {_KVCACHE}",
    # 1280 + 800 of 1 byte, 1024 written of 2
    example=Example(
        (
            *(f8(8, 1, 4, 40), f8(64, 16, 1, 40), 32, _LENGTHS, _TABLE, 0.1, True, _TABLE),
            *(_LENGTHS, _LENGTHS, _LENGTHS),
        ),
        flops=11520,
        bytes=4128,
    ),
    setting=_DECODED,
)
def flash_mla(a: Args) -> Work:
    """FlashMLA's decoding, of all keys; or of those whose places are given."""
    q, cache = a.tensor("query"), a.tensor("cache")
    value_width = a.integer("value_width", 0)
    require(0 < value_width <= size(q, -1))
    if (indices := a.optional("indices")) is not None:
        return _chosen(q, cache, indices, value_width)
    require(size(cache, -1) == size(q, -1))
    return _latent(a, q, size(q, -1), value_width, cache.dtype)


def _chosen(q: Tensor, cache: Tensor, indices: Tensor, value_width: int) -> Work:
    """Give the work over as many keys as a query has places; a place of -1 is computed, too."""
    keys, width = size(indices, -1), size(q, -1)
    tokens = q.numel // max(1, size(q, -2) * width)
    out = like(q, (*q.shape[:-1], value_width))
    count = min(cache.numel, tokens * keys * size(cache, -1))
    flops = 2 * q.numel // max(1, width) * keys * (width + value_width)
    return Work(flops, (q, fresh((count,), cache.dtype), indices), (out,))


# 2 tokens of 4 heads over 8 keys each: 2 * 8 * 8 * (40 + 32); 320 and 16 rows of 40 read of 2
# bytes, 16 places of 4, 256 written of 2
@op(
    *("sgl_kernel::sparse_prefill_fwd", "_flashmla_C::sparse_prefill_fwd"),
    signature="Tensor query, Tensor cache, Tensor indices, float scale, int value_width",
    example=Example(
        (bf16(2, 4, 40), bf16(64, 1, 40), i32(2, 1, 8), 0.1, 32), flops=9216, bytes=2496
    ),
)
def sparse_prefill(a: Args) -> Work:
    """FlashMLA's attention to the keys whose places are given, each token's own."""
    q, cache = a.tensor("query"), a.tensor("cache")
    return _chosen(q, cache, a.tensor("indices"), a.integer("value_width", 0))


_STATES = bf16(8, 4, 16)
_SUMS = f32(8, 4)


# 512 outputs: two products and their sum; two of 512 read, one written of 2 bytes, two of 32
# sums read and one written of 4
@op(
    *("sgl_kernel::merge_state", "sgl_kernel::merge_state_v2"),
    signature="Tensor first, Tensor sum_a, Tensor second, Tensor sum_b, Tensor out, Tensor total",
    example=Example(
        (_STATES, _SUMS, _STATES, _SUMS, _STATES, _SUMS),
        flops=1536,
        bytes=3456,
        op="merge_state_v2",
    ),
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
