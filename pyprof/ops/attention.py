"""Scaled dot-product attention in every form: flash, memory-efficient, cuDNN, math, flex, varlen.

Forward: two products, scores and values. Backward of the fused forms: five, as the scores are
computed again (torch.utils.flop_counter counts the same). Softmax is not counted. A causal mask
halves: of scores above the diagonal none is needed (flop_counter counts all of them). Bytes: q, k,
v and a bias read once, the output written once: that is what fusing is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.marker import Call, Opaque, Tensor
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, like, size

_Q = Tensor((2, 4, 8, 16), "bfloat16")
_CAUSAL_MASKS = (1, 2)  # ATen's custom_mask_type: from the top left, from the bottom right


@dataclass(frozen=True, slots=True)
class Heads:
    """The lengths of one attention: batch, query heads, both sequences, both head sizes."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    def params(self, q: Tensor, *, causal: bool) -> dict[str, object]:
        """Give what the report shows."""
        found: dict[str, object] = {"B": self.batch, "H": self.heads, "Sq": self.queries}
        found |= {"Sk": self.keys, "D": self.width, "Dv": self.value_width, "causal": int(causal)}
        return found | ({"type": q.dtype} if q.dtype else {})


def _heads(q: Tensor, k: Tensor, v: Tensor, *, heads_at: int) -> Heads:
    """Read [B, H, S, D] (heads_at -3) or [B, S, H, D] (heads_at -2); fewer key heads share."""
    sequence_at = -5 - heads_at
    heads, key_heads = size(q, heads_at), size(k, heads_at)
    if key_heads == 0 or heads % key_heads or size(q, -1) != size(k, -1):
        raise Unknown("arguments do not fit the op")
    batch = q.numel // max(1, heads * size(q, sequence_at) * size(q, -1))
    return Heads(batch, heads, size(q, sequence_at), size(k, sequence_at), size(q, -1), size(v, -1))


def _scores(h: Heads, *, causal: bool) -> int:
    """Count the scores of one head, twice: half of the square on the diagonal is masked."""
    if not causal:
        return 2 * h.queries * h.keys
    square = min(h.queries, h.keys)
    return square * square + 2 * max(0, h.queries - h.keys) * h.keys


def _forward_flops(h: Heads, *, causal: bool) -> int:
    return h.batch * h.heads * _scores(h, causal=causal) * (h.width + h.value_width)


def _backward_flops(h: Heads, *, causal: bool) -> int:
    """Scores again, dQ and dK (head size); dP and dV (value's head size)."""
    each = 3 * h.width + 2 * h.value_width
    return h.batch * h.heads * _scores(h, causal=causal) * each


def _is_causal(a: Args) -> bool:
    mask = a.values.get("custom_mask_type")
    if isinstance(mask, int):
        return mask in _CAUSAL_MASKS
    if isinstance(mask, Opaque) and "custom_mask_type" in a.values and mask.type != "missing":
        raise Unknown("custom_mask_type not recorded")
    return a.flag("is_causal", default=False)


def _biases(a: Args) -> tuple[Tensor, ...]:
    found = a.optional("attn_mask")
    return () if found is None else (found,)


def fused(a: Args, *, heads_at: int, backward: bool) -> Work:
    """Give the work of one attention whose heads are that dimension, counted from the end."""
    q, k, v = a.tensor("query"), a.tensor("key"), a.tensor("value")
    out = like(q, (*q.shape[:-1], size(v, -1)))
    reads = (q, k, v, *_biases(a))
    writes: tuple[Tensor, ...] = (out,)
    if backward:
        reads, writes = (out, out, *reads), (like(q), like(k), like(v))
    try:
        causal = _is_causal(a)
        h = _lengths(a, q, k, v, heads_at=heads_at)
    except Unknown as unknown:
        return Work(None, reads, writes, no_flops=str(unknown))
    count = _backward_flops if backward else _forward_flops
    return Work(count(h, causal=causal), reads, writes, h.params(q, causal=causal))


def _lengths(a: Args, q: Tensor, k: Tensor, v: Tensor, *, heads_at: int) -> Heads:
    starts = a.optional("cum_seq_q")
    if starts is None or starts.shape in ((), (0,)):
        return _heads(q, k, v, heads_at=heads_at)
    return _packed(a, q, k, v, starts)


def _packed(a: Args, q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Heads:
    """Read sequences laid end to end: their lengths are told only where all are the longest."""
    count = size(starts, 0) - 1
    longest, longest_key = a.integer("max_q", 0), a.integer("max_k", 0)
    total, total_key = (t.numel // max(1, size(t, -1) * size(t, -2)) for t in (q, k))
    if count * longest != total or count * longest_key != total_key:
        raise Unknown("lengths of packed sequences depend on the data")
    heads = size(q, -2)
    return Heads(count, heads, longest, longest_key, size(q, -1), size(v, -1))


_SDPA = (
    "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal,"
    "float scale, bool enable_gqa"
)
_EXAMPLE = Call("torch.nn.functional", "scaled_dot_product_attention", (_Q, _Q, _Q))


# scores 2 * 8 * 8 * 16 and values as many, times 2 * 4 = 32768; q, k, v, out of 1024 elements of 2
@op(
    *("scaled_dot_product_attention", "_scaled_dot_product_attention_math"),
    signature=_SDPA,
    example=_EXAMPLE,
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
    *("scaled_dot_product_attention", "_scaled_dot_product_attention_math"),
    direction=BPROP,
    signature=_SDPA,
    example=_EXAMPLE,
    flops=81920,
    bytes=16384,
    batch=("query", "key", "value"),
)
@op(
    "aten::_scaled_dot_product_flash_attention",
    direction=BPROP,
    signature="Tensor query, Tensor key, Tensor value, float dropout_p, bool is_causal",
    example=Call("aten", "_scaled_dot_product_flash_attention", (_Q, _Q, _Q, 0.0, True)),
    flops=40960,  # half: causal
    bytes=16384,
    batch=("query", "key", "value"),
)
@op(
    *("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"),
    direction=BPROP,
    signature=(
        "Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool compute_log_sumexp,"
        "float dropout_p, bool is_causal"
    ),
    example=Call(
        "aten", "_scaled_dot_product_cudnn_attention", (_Q, _Q, _Q, None, True, 0.0, False)
    ),
    flops=81920,
    bytes=16384,
    batch=("query", "key", "value"),
)
def attention_backward(a: Args) -> Work:
    """The gradients of queries, keys and values, the scores computed again."""
    return fused(a, heads_at=-3, backward=True)
