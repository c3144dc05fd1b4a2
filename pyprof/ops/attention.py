"""Scaled dot-product attention in every form: flash, memory-efficient, cuDNN, math, flex, varlen.

Forward: two products, scores and values. Backward of the fused forms: five, as the scores are
computed again (torch.utils.flop_counter counts the same). Softmax is not counted. A causal mask
halves: of scores above the diagonal none is needed (flop_counter counts all of them). Bytes: q, k,
v and a bias read once, the output written once: that is what fusing is for.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.attention_scores import Heads, band, heads, packed
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, like, size

FAMILY = "attention"

_Q = Tensor((2, 4, 8, 16), "bfloat16")


def fused(a: Args, *, heads_at: int, backward: bool, from_end: bool = False) -> Work:
    """Give the work of one attention whose heads are that dimension, counted from the end.

    `from_end`: a causal mask's diagonal ends in the last query and key, as in flash kernels.
    """
    q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
    out = like(q, (*q.shape[:-1], size(v, -1)))
    reads = (q, k, v, *a.present("attn_mask"))
    writes: tuple[Tensor, ...] = (out,)
    if backward:
        reads, writes = (out, out, *reads), (like(q), like(k), like(v))
    try:
        mask = band(a, from_end=from_end)
        h = _lengths(a, q, k, v, heads_at=heads_at)
    except Unknown as unknown:
        return Work(None, reads, writes, no_flops=str(unknown))
    # Scores and values; backward dQ and dK (head size), dP and dV (the value's), and the scores
    # again where a fused kernel did not keep them.
    again = 0 if a.op.endswith("_math") else h.width
    each = again + 2 * (h.width + h.value_width) if backward else h.width + h.value_width
    flops = h.batch * h.heads * mask.seen(h.queries, h.keys) * each
    return Work(flops, reads, writes, h.params(q, mask))


def _lengths(a: Args, q: Tensor, k: Tensor, v: Tensor, *, heads_at: int) -> Heads:
    if a.optional("seqused_k") is not None or a.optional("block_table") is not None:
        raise Unknown("lengths of cached keys depend on the data")
    starts = a.optional("cum_seq_q")
    if starts is None or starts.shape in ((), (0,)):
        return heads(q, k, v, heads_at=heads_at)
    return packed(a, q, k, v, starts)


# scores 2 * 8 * 8 * 16 and values as many, times 2 * 4 = 32768; q, k, v, out of 1024 elements of 2
@op(
    *("scaled_dot_product_attention", "_scaled_dot_product_attention_math"),
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p,"
        "bool is_causal, float scale, bool enable_gqa"
    ),
    example=Call("torch.nn.functional", "scaled_dot_product_attention", (_Q, _Q, _Q)),
    flops=32768,
    bytes=8192,
    batch=("query", "key", "value"),
)
@op(
    *("aten::_scaled_dot_product_flash_attention",),
    signature="Tensor query, Tensor key, Tensor value, float dropout_p, bool is_causal",
    example=Call("aten", "_scaled_dot_product_flash_attention", (_Q, _Q, _Q, 0.0, True)),
    flops=16384,  # half: causal
    bytes=8192,
    batch=("query", "key", "value"),
)
@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    signature=(
        "Tensor query, Tensor key, Tensor value, float dropout_p, bool is_causal,Tensor? attn_mask"
    ),
    example=Call("aten", "_scaled_dot_product_flash_attention_for_cpu", (_Q, _Q, _Q, 0.0, False)),
    flops=32768,
    bytes=8192,
    batch=("query", "key", "value"),
)
@op(
    *("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"),
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool compute_log_sumexp,"
        "float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten",
        "_scaled_dot_product_efficient_attention",
        (_Q, _Q, _Q, None, False, 0.0, False),
    ),
    flops=32768,
    bytes=8192,
    batch=("query", "key", "value"),
)
@op(
    "aten::_scaled_dot_product_fused_attention_overrideable",
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten", "_scaled_dot_product_fused_attention_overrideable", (_Q, _Q, _Q, None, 0.0, False)
    ),
    flops=32768,
    bytes=8192,
    batch=("query", "key", "value"),
)
def attention(a: Args) -> Work:
    """Softmax of queries times keys, times values: [batch, heads, sequence, head]."""
    return fused(a, heads_at=-3, backward=False)


# five products of 16384: 81920; go, q, k, v, out read, dq, dk, dv written: 8 of 1024 elements of 2
@op(
    "scaled_dot_product_attention",
    direction=BPROP,
    flops=81920,
    bytes=16384,
    batch=("query", "key", "value"),
)
@op(
    "_scaled_dot_product_attention_math",
    direction=BPROP,
    example=Call("torch", "_scaled_dot_product_attention_math", (_Q, _Q, _Q)),
    flops=65536,  # four products: the scores were kept
    bytes=16384,
    batch=("query", "key", "value"),
)
@op(
    "aten::_scaled_dot_product_flash_attention",
    direction=BPROP,
    flops=40960,  # half: causal
    bytes=16384,
    batch=("query", "key", "value"),
)
@op(
    *("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"),
    direction=BPROP,
    flops=81920,
    bytes=16384,
    batch=("query", "key", "value"),
)
def attention_backward(a: Args) -> Work:
    """The gradients of queries, keys and values, the scores computed again."""
    return fused(a, heads_at=-3, backward=True)
