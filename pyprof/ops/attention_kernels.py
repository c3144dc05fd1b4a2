"""Attention as the kernels' own entry points are called: flash, memory-efficient, cuDNN, packed.

The formulas are those of `attention`; here the layout is [batch, sequence, heads, head], or
[total, heads, head] for sequences packed end to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.marker import Call, Tensor
from pyprof.ops.attention import fused
from pyprof.ops.registry import op

if TYPE_CHECKING:
    from pyprof.ops.work import Args, Work

_Q = Tensor((2, 4, 8, 16), "bfloat16")
_FLASH = Tensor((2, 8, 4, 16), "bfloat16")
_TOTAL = Tensor((16, 4, 16), "bfloat16")  # two sequences of 8, one behind the other
_STARTS = Tensor((3,), "int32")

_BACKWARD = "Tensor grad_out, Tensor query, Tensor key, Tensor value"
_OUT = "Tensor? out, Tensor? logsumexp"

_PACKED = (
    "Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k, float dropout_p, bool is_causal"
)


@op(
    "aten::_flash_attention_forward",
    signature=f"Tensor query, Tensor key, Tensor value, {_PACKED}",
    example=Call(
        "aten",
        "_flash_attention_forward",
        (_TOTAL, _TOTAL, _TOTAL, _STARTS, _STARTS, 8, 8, 0.0, False),
    ),
    flops=32768,  # two sequences of 8, as above
    bytes=8192,
)
@op(
    "aten::_efficient_attention_forward",
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? cum_seq_q,"
        "Tensor? cum_seq_k, int max_q, int max_k, float dropout_p, int custom_mask_type"
    ),
    example=Call(
        "aten",
        "_efficient_attention_forward",
        (_FLASH, _FLASH, _FLASH, None, None, None, None, None, 0.0, 1),
    ),
    flops=16384,  # half: mask type 1 is causal
    bytes=8192,
)
@op(
    *("flash_attn::_flash_attn_forward", "flash_attn::flash_attn_func"),
    signature=(
        "Tensor query, Tensor key, Tensor value, float dropout_p, float softmax_scale,"
        "bool is_causal"
    ),
    example=Call("flash_attn", "_flash_attn_forward", (_FLASH, _FLASH, _FLASH, 0.0, 0.25, False)),
    flops=32768,
    bytes=8192,
)
@op(
    "flash_attn::_flash_attn_varlen_forward",
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q,"
        "int max_k, float dropout_p, float softmax_scale, bool is_causal"
    ),
    example=Call(
        "flash_attn",
        "_flash_attn_varlen_forward",
        (_TOTAL, _TOTAL, _TOTAL, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True),
    ),
    flops=16384,
    bytes=8192,
)
def flash(a: Args) -> Work:
    """The kernels' own entry points: [batch, sequence, heads, head], or packed sequences."""
    return fused(a, heads_at=-2, backward=False)


_FLASH_GO = (_FLASH, _FLASH, _FLASH, _FLASH, _FLASH, Tensor((2, 4, 8), "float32"))


@op(
    "aten::_flash_attention_backward",
    signature=f"{_BACKWARD}, {_OUT}, {_PACKED}",
    example=Call("aten", "_flash_attention_backward", (*_FLASH_GO, None, None, 8, 8, 0.0, False)),
    flops=81920,
    bytes=16384,
)
@op(
    "aten::_efficient_attention_backward",
    signature=(
        f"{_BACKWARD}, Tensor? attn_mask, Tensor? out, Tensor? cum_seq_q, Tensor? cum_seq_k,"
        "int max_q, int max_k, Tensor? logsumexp, float dropout_p, any seed, any offset,"
        "int custom_mask_type"
    ),
    example=Call(
        "aten",
        "_efficient_attention_backward",
        (*(_FLASH,) * 4, None, _FLASH, None, None, 8, 8, None, 0.0, None, None, 0),
    ),
    flops=81920,
    bytes=16384,
)
@op(
    "flash_attn::_flash_attn_backward",
    signature=(
        f"{_BACKWARD}, {_OUT}, Tensor? dq, Tensor? dk, Tensor? dv, float dropout_p,"
        "float softmax_scale, bool is_causal"
    ),
    example=Call(
        "flash_attn",
        "_flash_attn_backward",
        (*_FLASH_GO, _FLASH, _FLASH, _FLASH, 0.0, 0.25, False),
    ),
    flops=81920,
    bytes=16384,
)
def flash_backward(a: Args) -> Work:
    """The gradients of queries, keys and values."""
    return fused(a, heads_at=-2, backward=True)


@op(
    "aten::_cudnn_attention_forward",
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, Tensor? cum_seq_q,"
        "Tensor? cum_seq_k, int max_q, int max_k, bool compute_log_sumexp, float dropout_p,"
        "bool is_causal"
    ),
    example=Call(
        "aten",
        "_cudnn_attention_forward",
        (_Q, _Q, _Q, None, None, None, 8, 8, False, 0.0, False),
    ),
    flops=32768,  # as scaled_dot_product_attention
    bytes=8192,
)
def cudnn(a: Args) -> Work:
    """CuDNN's entry point keeps [batch, heads, sequence, head]."""
    return fused(a, heads_at=-3, backward=False)


@op(
    "aten::_cudnn_attention_backward",
    signature=(
        f"{_BACKWARD}, {_OUT}, any seed, any offset, Tensor? attn_mask, Tensor? cum_seq_q,"
        "Tensor? cum_seq_k, int max_q, int max_k, float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten",
        "_cudnn_attention_backward",
        (*(_Q,) * 5, Tensor((2, 4, 8), "float32"), *(None,) * 5, 8, 8, 0.0, False),
    ),
    flops=81920,
    bytes=16384,
)
def cudnn_backward(a: Args) -> Work:
    """The gradients of queries, keys and values."""
    return fused(a, heads_at=-3, backward=True)
