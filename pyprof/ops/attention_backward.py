"""Attention's backward passes as ATen's own ops, and flex attention; formulas in `attention`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker import Call, Tensor
from pyprof.ops.attention import fused
from pyprof.ops.registry import BPROP, op

if TYPE_CHECKING:
    from pyprof.ops.work import Args, Work

FAMILY = "attention"

_Q = Tensor((2, 4, 8, 16), "bfloat16")

_BACKWARD = "Tensor grad_out, Tensor query, Tensor key, Tensor value"
_OUT = "Tensor? out, Tensor? logsumexp"
_GO = (_Q, _Q, _Q, _Q, _Q, Tensor((2, 4, 8), "float32"))


@op(
    *("aten::_scaled_dot_product_flash_attention_backward",),
    signature=(
        f"{_BACKWARD}, {_OUT}, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k,"
        "float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten",
        "_scaled_dot_product_flash_attention_backward",
        (*_GO, None, None, 8, 8, 0.0, False),
    ),
    flops=81920,  # as above
    bytes=16384,
)
@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    signature=f"{_BACKWARD}, {_OUT}, float dropout_p, bool is_causal, Tensor? attn_mask",
    example=Call(
        "aten", "_scaled_dot_product_flash_attention_for_cpu_backward", (*_GO, 0.0, False)
    ),
    flops=81920,
    bytes=16384,
)
@op(
    "aten::_scaled_dot_product_efficient_attention_backward",
    signature=(
        f"{_BACKWARD}, Tensor? attn_mask, {_OUT}, any seed, any offset, float dropout_p, any mask,"
        "bool is_causal"
    ),
    example=Call(
        "aten",
        "_scaled_dot_product_efficient_attention_backward",
        (_Q, _Q, _Q, _Q, None, _Q, None, None, None, 0.0, None, False),
    ),
    flops=81920,
    bytes=16384,
)
@op(
    "aten::_scaled_dot_product_cudnn_attention_backward",
    signature=(
        f"{_BACKWARD}, {_OUT}, any seed, any offset, Tensor? attn_mask, any starts_q, any starts_k,"
        "int max_q, int max_k, float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten",
        "_scaled_dot_product_cudnn_attention_backward",
        (*_GO, None, None, None, None, None, 8, 8, 0.0, False),
    ),
    flops=81920,
    bytes=16384,
)
def attention_backward_op(a: Args) -> Work:
    """The same as ATen's own op."""
    return fused(a, heads_at=-3, backward=True)


@op(
    *("flex_attention", "torch.nn.attention.flex_attention.flex_attention"),
    signature="Tensor query, Tensor key, Tensor value, any score_mod, any block_mask",
    example=Call("torch.nn.attention.flex_attention", "flex_attention", (_Q, _Q, _Q)),
    flops=32768,  # without a mask as above
    bytes=8192,
    batch=("query", "key", "value"),
)
def flex(a: Args) -> Work:
    """Attention with a user's score function; how much a block mask leaves out is not recorded."""
    return _unless_masked(a, fused(a, heads_at=-3, backward=False))


def _unless_masked(a: Args, work: Work) -> Work:
    if not a.given("block_mask"):
        return work
    return replace(work, flops=None, no_flops="block mask not recorded")


@op(
    *("flex_attention", "torch.nn.attention.flex_attention.flex_attention"),
    direction=BPROP,
    flops=81920,  # five products, as above
    bytes=16384,
    batch=("query", "key", "value"),
)
def flex_backward(a: Args) -> Work:
    """The gradients of queries, keys and values."""
    return _unless_masked(a, fused(a, heads_at=-3, backward=True))
