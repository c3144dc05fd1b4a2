"""Flash, memory-efficient and other fused attention of libraries, forward and backward.

The operations are those of any attention. The lengths of packed or cached sequences are on the GPU:
they are taken from the serving step if they do not follow from the sizes.
"""

from dataclasses import replace

from pyprof.ops.examples import Example, bf16, f32, i32, i64
from pyprof.ops.libraries.attention.paged_attention import key_heads
from pyprof.ops.libraries.attention.served_requests import EXAMPLE_STEP, by_requests
from pyprof.ops.registry import op
from pyprof.ops.torch.nn.attention import QKV, WINDOW, fused
from pyprof.ops.torch.nn.attention_kernels import kernel
from pyprof.ops.work import Args, Work, has_rank, size

FAMILY = "attention"

_PACKED, _STARTS, _PAGES, _TABLE = bf16(16, 4, 16), i32(3), bf16(64, 16, 2, 16), i32(2, 4)
_FLASH, _HEADS = bf16(2, 8, 4, 16), bf16(2, 4, 8, 16)
_PACKED_QKV = (_PACKED,) * 3


_FA3 = (
    f"{QKV}, Tensor? new_key, Tensor? new_value, Tensor? query_v,"
    "Tensor? out, Tensor? cum_seq_q, Tensor? cum_seq_k, Tensor? cum_new, Tensor? seqused_q,"
    "Tensor? seqused_k, int max_q, int max_k, Tensor? block_table, any batch_idx, any leftpad,"
    "any cosine, any sine, any lengths, any q_scale, any k_scale, any v_scale, float scale,"
    f"bool is_causal, {WINDOW}"
)
_FA2_VARLEN = (
    f"{QKV}, Tensor? out, Tensor? cum_seq_q, Tensor? cum_seq_k,"
    "Tensor? seqused_k, any leftpad, Tensor? block_table, any alibi, int max_q, int max_k,"
    f"float dropout_p, float scale, any zeros, bool is_causal, {WINDOW}"
)
_VARLEN = "Tensor? cum_seq_q, Tensor? cum_seq_k"


# two sequences of 8, 2 * 4 heads of 8 * 8 scores, half of them, times 2 * (16 + 16); q, k, v and
# the result of 1024 elements of 2 bytes
@op(
    *("flash_attn_3::_flash_attn_forward", "flash_attn_3::fwd", "_vllm_fa3_C::fwd"),
    "sgl_kernel::fwd",
    signature=_FA3,
    example=Example(
        (_FLASH, _FLASH, _FLASH, *(None,) * 20, 0.25, True, -1, -1), flops=16384, bytes=8192
    ),
    context=EXAMPLE_STEP,
)
@op(
    "_vllm_fa2_C::varlen_fwd",
    signature=_FA2_VARLEN,
    example=Example(
        (
            *(*_PACKED_QKV, None, _STARTS, _STARTS, *(None,) * 4, 8, 8, 0.0, 0.25, False, True),
            *(-1, -1),
        ),
        flops=16384,
        bytes=8192,
    ),
    context=EXAMPLE_STEP,
)
@op(
    *("aiter::mha_fwd", "aiter::fmha_v3_fwd", "flash_attn_2_cuda::fwd"),
    signature=f"{QKV}, float dropout_p, float scale, bool is_causal, {WINDOW}",
    example=Example((_FLASH, _FLASH, _FLASH, 0.0, 0.25, True, -1, -1), flops=16384, bytes=8192),
)
@op(
    *("aiter::mha_varlen_fwd", "aiter::fmha_v3_varlen_fwd"),
    signature=(
        f"{QKV}, {_VARLEN}, int max_q, int max_k, int min_q, float dropout_p, float scale,"
        f"float cap, bool zeros, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (*_PACKED_QKV, _STARTS, _STARTS, 8, 8, 0, 0.0, 0.25, 0.0, False, True, -1, -1),
        flops=16384,
        bytes=8192,
    ),
    context=EXAMPLE_STEP,
)
@op(
    "xformers_flash::flash_fwd",
    signature=(
        (
            f"{QKV}, {_VARLEN}, Tensor? seqused_k, int max_q, int max_k, float dropout_p,"
            f"float scale, bool is_causal, {WINDOW}, any returned, Tensor? block_table"
        ),
        (
            f"{QKV}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
            "bool is_causal, any returned"
        ),
        (
            f"{QKV}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
            "bool is_causal, int window_size, any returned"
        ),
    ),
    example=Example(
        (*_PACKED_QKV, _STARTS, _STARTS, None, 8, 8, 0.0, 0.25, True, -1, -1, False),
        flops=16384,
        bytes=8192,
    ),
)
@op(
    "xformers_flash3::flash_fwd",
    signature=(
        f"{QKV}, {_VARLEN}, Tensor? seqused_k, any leftpad, int max_q, int max_k, float dropout_p,"
        "float scale, bool is_causal, any q_scale, any k_scale, any v_scale, Tensor? block_table,"
        f"any splits, {WINDOW}"
    ),
    example=Example(
        (
            *(*_PACKED_QKV, _STARTS, _STARTS, None, None, 8, 8, 0.0, 0.25, True),
            *(None, None, None, None, False, -1, -1),
        ),
        flops=16384,
        bytes=8192,
    ),
)
@op(
    "aiter::mha_batch_prefill",
    signature=(
        f"{QKV}, Tensor cum_seq_q, Tensor pages, Tensor block_table, int max_q, int max_k,"
        f"float dropout_p, float scale, float cap, bool zeros, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (_PACKED, _PAGES, _PAGES, _STARTS, _STARTS, _TABLE, 8, 8, 0.0, 0.25, 0.0, False, True),
        flops=10240,
        bytes=4352,
    ),
    context=EXAMPLE_STEP,
)
def flash(a: Args) -> Work:
    """Flash attention: of a batch, of packed sequences, or over a paged cache."""
    q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
    if any(t.shape not in ((), (0,)) for t in a.present("block_table", "seqused_k")):
        # pages may lie in an order of their own
        width = size(q if has_rank(v, 5, or_more=True) else v, -1)
        return by_requests(a, q, key_heads(q, k), width, k.dtype)
    work = fused(a, heads_at=-2, backward=False, from_end=True)
    if work.flops is None and a.context.batch is not None and a.values.get("is_causal") is True:
        return by_requests(a, q, size(k, -2), size(v, -1), k.dtype)
    return work


_GRADIENTS = "Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor? out, Tensor? lse"
_GIVEN_GRADS = "Tensor? dq, Tensor? dk, Tensor? dv"
_XFORMERS = (
    f"{_GRADIENTS.replace('Tensor grad', 'Tensor! grad')}, {_GIVEN_GRADS}, {_VARLEN}, int max_q,"
    "int max_k, float dropout_p, float scale, bool is_causal"
)
_XFORMERS_NEW = (
    f"bool shared, {_GRADIENTS}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale,"
    f"bool is_causal, {WINDOW}, any rng"
)
_GO = (_FLASH, _FLASH, _FLASH, _FLASH, _FLASH, f32(2, 4, 8))
_GO_PACKED = (*_PACKED_QKV, _PACKED, _PACKED, f32(4, 16))


# five products of half of 16384: 40960; go, q, k, v, out read, dq, dk, dv written
@op(
    "flash_attn_3::_flash_attn_backward",
    signature=(
        f"{_GRADIENTS}, {_VARLEN}, any used_q, any used_k, int max_q, int max_k, Tensor? dq,"
        f"Tensor? dk, Tensor? dv, float scale, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (*_GO, *(None,) * 6, _FLASH, _FLASH, _FLASH, 0.25, True, -1, -1), flops=40960, bytes=16384
    ),
)
@op(
    "flash_attn::_flash_attn_varlen_backward",
    signature=(
        f"{_GRADIENTS}, Tensor? dq, Tensor? dk, Tensor? dv, {_VARLEN}, int max_q, int max_k,"
        f"float dropout_p, float scale, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (*_GO_PACKED, *_PACKED_QKV, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True, -1, -1),
        flops=40960,
        bytes=16384,
    ),
)
@op(
    *("aiter::mha_bwd", "aiter::fmha_v3_bwd"),
    signature=f"{_GRADIENTS}, float dropout_p, float scale, bool is_causal, {WINDOW}",
    example=Example((*_GO, 0.0, 0.25, True, -1, -1), flops=40960, bytes=16384),
)
@op(
    *("aiter::mha_varlen_bwd", "aiter::fmha_v3_varlen_bwd"),
    signature=(
        f"{_GRADIENTS}, {_VARLEN}, int max_q, int max_k, float dropout_p, float scale, bool zeros,"
        f"bool is_causal, {WINDOW}"
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
        f"{WINDOW}"
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
        # older versions were passed the gradients, and the oldest no window
        f"{_XFORMERS}, {WINDOW}, any rng",
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
        f"bool is_causal, {WINDOW}"
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
        f"{QKV}, int batch, bool amd, int version, float scale, Tensor? cum_seq_q,Tensor? max_q"
    ),
    example=Example(
        (*(bf16(1, 16, 4, 16),) * 3, 1, False, 2, 0.25, i32(2), i32()), flops=65536, bytes=8192
    ),
)
def of_images(a: Args) -> Work:
    """Attention in a vision encoder, without a mask: of one image, or of images of equal size."""
    starts = a.optional("cum_seq_q")
    one = starts is None or starts.shape == (2,)
    given = a.replaced(cum_seq_q=None, is_causal=False) if one else a
    return fused(given, heads_at=-2, backward=False)


# two batches of 4 heads, 8 * 8 scores, half of them, times 2 * (16 + 16); four of 1024 of 2 bytes
op(
    "xformers::efficient_attention_forward_cutlass",
    signature=(
        (
            f"{QKV}, Tensor? attn_mask, {_VARLEN}, int max_q, int max_k, float dropout_p,"
            "int custom_mask_type, bool computes_lse, float scale, Tensor? seqused_k,"
            "int window_size"
        ),
        # older versions, which took one length or none
        (
            f"{QKV}, Tensor? attn_mask, {_VARLEN}, int max_q, float dropout_p, bool computes_lse,"
            "int custom_mask_type, float scale, Tensor? seqused_k, int window_size"
        ),
        f"{QKV}, {_VARLEN}, int max_q, bool computes_lse, bool is_causal",
        f"{QKV}, bool computes_lse, bool is_causal",
    ),
    example=Example(
        (_FLASH, _FLASH, _FLASH, *(None,) * 5, 0.0, 1, False, None, None, None),
        flops=16384,
        bytes=8192,
    ),
)(kernel)


# two batches of 4 heads, 8 * 8 scores times 2 * (16 + 16); q, k, v, the bias's parts and the result
# of 1024 elements of 2 bytes
@op(
    "customflash::custom_flash_aligned",
    signature=f"{QKV}, Tensor bias",
    example=Example(((_HEADS,) * 4), flops=32768, bytes=10240),
)
def with_decomposed_bias(a: Args) -> Work:
    """Segment Anything's kernel: a bias of rows and columns of an image, added to the scores."""
    work = fused(a, heads_at=-3, backward=False)
    return replace(work, reads=(*work.reads, a.tensor("bias")))
