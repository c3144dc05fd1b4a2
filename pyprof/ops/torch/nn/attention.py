"""Scaled dot-product attention in every form: flash, memory-efficient, cuDNN, math, flex, varlen.

Forward: two products, scores and values. Backward of the fused forms: five, as the scores are
computed again (torch.utils.flop_counter counts the same). Softmax is not counted. A causal mask
halves: no score above the diagonal is needed (flop_counter counts all of them). Scores are counted
as an area: a causal square is half of it, S^2 / 2 and not S (S + 1) / 2, as Dao 2023
(FlashAttention-2, section 4.1) counts it. Bytes: q, k, v and a bias read once, the output written
once: that is what fusing is for.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.marker import Opaque, Tensor
from pyprof.ops.examples import NN, Example, bf16, f32
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import MISSING, Unknown
from pyprof.ops.work import Args, Work, like, require, size

_TOP_LEFT, _BOTTOM_RIGHT = 1, 2  # ATen's custom_mask_type: which corner the diagonal starts from


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """The lengths of one attention: batch, query heads, both sequences, both head sizes."""

    batch: int
    heads: int
    queries: int
    keys: int
    width: int
    value_width: int

    def twice_scores(self, band: Band) -> int:
        """Return twice the number of scores of all heads."""
        return self.batch * self.heads * band.seen(self.queries, self.keys)

    def params(self, q: Tensor, band: Band) -> dict[str, object]:
        """Return what the report shows."""
        shown: dict[str, object] = {"B": self.batch, "H": self.heads, "Sq": self.queries}
        shown |= {"Sk": self.keys, "D": self.width, "Dv": self.value_width}
        window = (band.left, band.right) if band.left is not None or band.right else None
        return shown | {"causal": int(band.right == 0), "window": window, "type": q.dtype}


@dataclass(frozen=True, slots=True)
class Band:
    """The keys that a query sees: from `left` before its own position to `right` after it.

    None: all of that side. `from_end`: the last query is at the last key, as in flash
    kernels; else the first query is at the first key, as for `is_causal`.
    """

    left: int | None = None
    right: int | None = None
    from_end: bool = False

    def seen(self, queries: int, keys: int) -> int:
        """Return twice the number of scores of one head."""
        shift = keys - queries if self.from_end else 0
        count = 2 * queries * keys
        if self.right is not None:
            count -= _beyond(queries, keys, shift + self.right)
        if self.left is not None:
            count -= _beyond(keys, queries, self.left - shift)
        return max(0, count)


def _beyond(rows: int, columns: int, diagonal: int) -> int:
    """Return twice the area of a rectangle that lies right of column = row + diagonal.

    A triangle with the rectangle's corner, less its parts that stick out on two sides.
    """
    corners = (columns - diagonal, columns - diagonal - rows, -diagonal, -diagonal - rows)
    corner_all, below, left, both = (max(0, leg) ** 2 for leg in corners)
    return corner_all - below - left + both


def heads(q: Tensor, k: Tensor, v: Tensor, *, heads_at: int) -> Heads:
    """Read [B, H, S, D] (heads_at -3) or [B, S, H, D] (heads_at -2); key heads may be shared."""
    sequence_at = -5 - heads_at
    count, key_heads = size(q, heads_at), size(k, heads_at)
    require(key_heads != 0 and not count % key_heads and size(q, -1) == size(k, -1))
    batch = q.numel // max(1, count * size(q, sequence_at) * size(q, -1))
    return Heads(
        batch=batch,
        heads=count,
        queries=size(q, sequence_at),
        keys=size(k, sequence_at),
        width=size(q, -1),
        value_width=size(v, -1),
    )


def packed(a: Args, q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Heads:
    """Read sequences laid end to end: their lengths are known only if all are the longest."""
    count = size(starts, 0) - 1
    longest, longest_key = a.integer("max_q", 0), a.integer("max_k", 0)
    total, total_key = (t.numel // max(1, size(t, -1) * size(t, -2)) for t in (q, k))
    if count * longest != total or count * longest_key != total_key:
        raise Unknown("lengths of packed sequences depend on the data")
    return Heads(
        batch=count,
        heads=size(q, -2),
        queries=longest,
        keys=longest_key,
        width=size(q, -1),
        value_width=size(v, -1),
    )


def band(a: Args, *, from_end: bool) -> Band:
    """Read the mask from `is_causal`, ATen's `custom_mask_type` and the window. Raises Unknown."""
    mask = a.values.get("custom_mask_type", 0)
    if isinstance(mask, Opaque) and mask is not MISSING:
        raise Unknown("custom_mask_type not recorded")
    causal = a.flag("is_causal", default=False) or a.flag("causal", default=False)
    if mask in (_TOP_LEFT, _BOTTOM_RIGHT):
        causal, from_end = True, mask == _BOTTOM_RIGHT
    left, right = _window(a)
    return Band(left, 0 if causal else right, from_end)


def _window(a: Args) -> tuple[int | None, int | None]:
    """Return how far a query sees to both sides: flash kernels write -1 for all of a side.

    None if unrecorded: a trace that records `is_causal` only leaves out values that are None.
    """
    window = a.values.get("window_size")
    if isinstance(window, int):  # the efficient kernel's: number of keys, with the query's own
        window = (window - 1,)
    if not isinstance(window, tuple):
        window = (a.values.get("window_size_left"), a.values.get("window_size_right"))
    sides = [side if isinstance(side, int) and side >= 0 else None for side in window]
    left, right = (*sides, None, None)[:2]
    return left, right


FAMILY = "attention"

_Q = bf16(2, 4, 8, 16)
QKV = "Tensor query, Tensor key, Tensor value"
WINDOW = "int window_size_left, int window_size_right"
BACKWARD = f"Tensor grad_out, {QKV}"
OUT = "Tensor? out, Tensor? logsumexp"
"""Arguments that signatures share."""


def fused(a: Args, *, heads_at: int, backward: bool, from_end: bool = False) -> Work:
    """Return the work of one attention with its heads in that dimension, counted from the end.

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
    # again if a fused kernel did not keep them.
    again = 0 if a.op.endswith("_math") else h.width
    each = again + 2 * (h.width + h.value_width) if backward else h.width + h.value_width
    flops = h.twice_scores(mask) * each
    params = h.params(q, mask)
    if a.given("block_mask"):  # flex attention's, of unknown density
        return Work(None, reads, writes, params, no_flops="block mask not recorded")
    return Work(flops, reads, writes, params)


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
        f"{QKV}, Tensor? attn_mask, float dropout_p, bool is_causal, float scale, bool enable_gqa"
    ),
    example=Example((_Q, _Q, _Q), flops=32768, bytes=8192, mod=NN),
)
@op(
    "aten::_scaled_dot_product_flash_attention",
    signature=f"{QKV}, float dropout_p, bool is_causal",
    # causal, so half of the scores
    example=Example((_Q, _Q, _Q, 0.0, True), flops=16384, bytes=8192),
)
@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    signature=f"{QKV}, float dropout_p, bool is_causal, Tensor? attn_mask",
    example=Example((_Q, _Q, _Q, 0.0, False), flops=32768, bytes=8192),
)
@op(
    *("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"),
    signature=f"{QKV}, Tensor? attn_mask, bool compute_lse, float dropout_p, bool is_causal",
    example=Example((_Q, _Q, _Q, None, False, 0.0, False), flops=32768, bytes=8192),
)
@op(
    "aten::_scaled_dot_product_fused_attention_overrideable",
    signature=f"{QKV}, Tensor? attn_mask, float dropout_p, bool is_causal",
    example=Example((_Q, _Q, _Q, None, 0.0, False), flops=32768, bytes=8192),
)
@op(
    *("flex_attention", "torch.nn.attention.flex_attention.flex_attention"),
    signature=f"{QKV}, any score_mod, any block_mask",
    # without a mask
    example=Example((_Q, _Q, _Q), flops=32768, bytes=8192, mod="torch.nn.attention.flex_attention"),
)
def attention(a: Args) -> Work:
    """Softmax of queries times keys, times values: [batch, heads, sequence, head]."""
    return fused(a, heads_at=-3, backward=False)


_GO = (_Q, _Q, _Q, _Q, _Q, f32(2, 4, 8))


# five products of 16384: 81920; go, q, k, v, out read, dq, dk, dv written: 8 of 1024 elements of 2
@op("scaled_dot_product_attention", direction=BPROP, flops=81920, bytes=16384)
@op(
    *("flex_attention", "torch.nn.attention.flex_attention.flex_attention"),
    direction=BPROP,
    flops=81920,
    bytes=16384,
)
@op(
    "_scaled_dot_product_attention_math",
    direction=BPROP,
    # four products: the scores were kept
    example=Example((_Q, _Q, _Q), flops=65536, bytes=16384),
)
@op(
    "aten::_scaled_dot_product_flash_attention",
    direction=BPROP,
    # causal, so half of the scores
    flops=40960,
    bytes=16384,
)
@op(
    *("aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_cudnn_attention"),
    direction=BPROP,
    flops=81920,
    bytes=16384,
)
@op(
    "aten::_scaled_dot_product_flash_attention_backward",
    signature=(
        f"{BACKWARD}, {OUT}, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k,"
        "float dropout_p, bool is_causal"
    ),
    # as above
    example=Example((*_GO, None, None, 8, 8, 0.0, False), flops=81920, bytes=16384),
)
@op(
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    signature=f"{BACKWARD}, {OUT}, float dropout_p, bool is_causal, Tensor? attn_mask",
    example=Example((*_GO, 0.0, False), flops=81920, bytes=16384),
)
@op(
    "aten::_scaled_dot_product_efficient_attention_backward",
    signature=(
        f"{BACKWARD}, Tensor? attn_mask, {OUT}, any seed, any offset, float dropout_p, any mask,"
        "bool is_causal"
    ),
    example=Example(
        (_Q, _Q, _Q, _Q, None, _Q, None, None, None, 0.0, None, False), flops=81920, bytes=16384
    ),
)
@op(
    "aten::_scaled_dot_product_cudnn_attention_backward",
    signature=(
        f"{BACKWARD}, {OUT}, any seed, any offset, Tensor? attn_mask, any starts_q, any starts_k,"
        "int max_q, int max_k, float dropout_p, bool is_causal"
    ),
    example=Example(
        (*_GO, None, None, None, None, None, 8, 8, 0.0, False), flops=81920, bytes=16384
    ),
)
def attention_backward(a: Args) -> Work:
    """The gradients of queries, keys and values, the scores computed again."""
    return fused(a, heads_at=-3, backward=True)
