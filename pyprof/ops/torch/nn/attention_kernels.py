"""Attention as the kernels' own entry points are called: flash, memory-efficient, cuDNN, packed.

The formulas are those of `attention`; here the layout is [batch, sequence, heads, head], or
[total, heads, head] for sequences packed end to end.
"""

from pyprof.ops.examples import Example, bf16, f16, f32, i32
from pyprof.ops.registry import op
from pyprof.ops.torch.nn.attention import BACKWARD, OUT, QKV, WINDOW, fused
from pyprof.ops.work import Args, Work, like

FAMILY = "attention"

_Q = bf16(2, 4, 8, 16)
_FLASH = bf16(2, 8, 4, 16)
_TOTAL = bf16(16, 4, 16)  # two sequences of 8, one after the other
_STARTS = i32(3)

_FLASH_GO = (_FLASH, _FLASH, _FLASH, _FLASH, _FLASH, f32(2, 4, 8))

_LENGTHS = "Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k"
_CACHE = "Tensor? seqused_k, any alibi_slopes, Tensor? block_table, any num_splits"
_VARLEN = f"{_LENGTHS}, bool is_causal, float scale, int[] window_size"
_VARLEN_CACHE = "any enable_gqa, Tensor? seqused_k, Tensor? block_table, any num_splits"
_FORWARD = f"{QKV}, {_LENGTHS}, float dropout_p, bool is_causal, any return_debug_mask"


@op(
    "aten::_flash_attention_forward",
    signature=(
        f"{_FORWARD}, float scale, {WINDOW}, {_CACHE}",
        f"{_FORWARD}, any q_scale, any k_scale, any v_scale, float scale, {WINDOW}, {_CACHE}",
    ),
    # two sequences of 8, as above
    example=Example(
        (_TOTAL, _TOTAL, _TOTAL, _STARTS, _STARTS, 8, 8, 0.0, False), flops=32768, bytes=8192
    ),
)
@op(
    "aten::_efficient_attention_forward",
    signature=(
        f"{QKV}, Tensor? attn_mask, {_LENGTHS}, float dropout_p, int custom_mask_type,"
        "any compute_log_sumexp, float scale, Tensor? seqused_k, int window_size"
    ),
    # half: mask type 1 is causal
    example=Example(
        (_FLASH, _FLASH, _FLASH, None, None, None, None, None, 0.0, 1), flops=16384, bytes=8192
    ),
)
# a window of 3 keys before the query: 2 * 8 * 8 - 8^2 (causal) - 5^2 of 128 scores, twice: 39;
# times 8 heads of 16 + 16
@op(
    "flash_attn::_flash_attn_forward",
    signature=f"{QKV}, float dropout_p, float softmax_scale, bool is_causal, {WINDOW}",
    example=Example((_FLASH, _FLASH, _FLASH, 0.0, 0.25, True, 3, 0), flops=9984, bytes=8192),
)
@op(
    "flash_attn::flash_attn_func",
    signature=f"{QKV}, float dropout_p, float softmax_scale, bool is_causal, int[] window_size",
    example=Example((_FLASH, _FLASH, _FLASH, 0.0, 0.25, False), flops=32768, bytes=8192),
)
@op(
    "flash_attn::_flash_attn_varlen_forward",
    signature=(
        f"{QKV}, {_LENGTHS}, float dropout_p, float softmax_scale, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (_TOTAL, _TOTAL, _TOTAL, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True), flops=16384, bytes=8192
    ),
)
@op(
    "torch_attn::_varlen_attn",
    signature=f"{QKV}, {_VARLEN}, {_VARLEN_CACHE}",
    example=Example((_TOTAL, _TOTAL, _TOTAL, _STARTS, None, 8, 8, True), flops=16384, bytes=8192),
)
@op(
    "torch.nn.attention.varlen.varlen_attn",
    signature=(
        f"{QKV}, {_LENGTHS}, *, any return_aux, float scale, int[] window_size, {_VARLEN_CACHE}"
    ),
    # causal: half of the scores
    example=Example(
        (_TOTAL, _TOTAL, _TOTAL, _STARTS, _STARTS, 8, 8),
        flops=16384,
        bytes=8192,
        kwargs={"window_size": (-1, 0)},
    ),
)
@op(
    "torch_attn::_varlen_attn_out",
    signature=f"Tensor out, {QKV}, {_VARLEN}, {_VARLEN_CACHE}",
    example=Example((*(_TOTAL,) * 4, _STARTS, _STARTS, 8, 8, False), flops=32768, bytes=8192),
)
@op(
    "aten::_flash_attention_backward",
    signature=(
        f"{BACKWARD}, {OUT}, {_LENGTHS}, float dropout_p, bool is_causal, any seed, any offset,"
        f"float scale, {WINDOW}"
    ),
    example=Example((*_FLASH_GO, None, None, 8, 8, 0.0, False), flops=81920, bytes=16384),
)
@op(
    "aten::_efficient_attention_backward",
    signature=(
        f"{BACKWARD}, Tensor? attn_mask, Tensor? out, {_LENGTHS}, Tensor? logsumexp,"
        "float dropout_p, any seed, any offset, int custom_mask_type, any bias_requires_grad,"
        "float scale, any num_splits, int window_size"
    ),
    example=Example(
        (*(_FLASH,) * 4, None, _FLASH, None, None, 8, 8, None, 0.0, None, None, 0),
        flops=81920,
        bytes=16384,
    ),
)
@op(
    "flash_attn::_flash_attn_backward",
    signature=(
        f"{BACKWARD}, {OUT}, Tensor? dq, Tensor? dk, Tensor? dv, float dropout_p,"
        f"float softmax_scale, bool is_causal, {WINDOW}"
    ),
    example=Example(
        (*_FLASH_GO, _FLASH, _FLASH, _FLASH, 0.0, 0.25, False), flops=81920, bytes=16384
    ),
)
@op(
    "torch_attn::_varlen_attn_backward",
    signature=(
        f"{BACKWARD}, {OUT}, {_LENGTHS}, bool is_causal, any rng_state, float scale,"
        "int[] window_size"
    ),
    example=Example(
        (*(_TOTAL,) * 5, f32(4, 16), _STARTS, _STARTS, 8, 8, False), flops=81920, bytes=16384
    ),
)
@op(
    "aten::_cudnn_attention_forward",
    signature=(
        f"{QKV}, Tensor? attn_mask, {_LENGTHS}, bool compute_log_sumexp, float dropout_p,"
        "bool is_causal"
    ),
    # as scaled_dot_product_attention
    example=Example(
        (_Q, _Q, _Q, None, None, None, 8, 8, False, 0.0, False), flops=32768, bytes=8192
    ),
)
@op(
    "aten::_cudnn_attention_backward",
    signature=(
        f"{BACKWARD}, {OUT}, any seed, any offset, Tensor? attn_mask, {_LENGTHS},"
        "float dropout_p, bool is_causal"
    ),
    example=Example(
        (*(_Q,) * 5, f32(2, 4, 8), *(None,) * 5, 8, 8, 0.0, False), flops=81920, bytes=16384
    ),
)
def kernel(a: Args) -> Work:
    """Attention, or the gradients of queries, keys and values; cuDNN keeps heads before tokens."""
    from_end = "efficient" not in a.op and "cudnn" not in a.op
    heads_at = -3 if "cudnn" in a.op else -2
    return fused(a, heads_at=heads_at, backward="grad_out" in a.values, from_end=from_end)


# 2 * 3 * 24 elements: a bias to each, and a scale for the third that are queries: 144 + 48; 144 and
# 24 read, 144 written of 2 bytes
@op(
    "aten::_transform_bias_rescale_qkv",
    family="pointwise",
    signature="Tensor qkv, Tensor bias, int heads",
    example=Example((f16(2, 3, 24), f16(24), 2), flops=192, bytes=624),
)
def transform_qkv(a: Args) -> Work:
    """Queries, keys and values apart, each head's side by side, with their bias; queries scaled."""
    qkv = a.tensor("qkv")
    return Work(qkv.numel + qkv.numel // 3, (qkv, a.tensor("bias")), (like(qkv),))
