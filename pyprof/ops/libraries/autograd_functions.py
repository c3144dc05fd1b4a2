"""Autograd functions of libraries for training, as they call themselves in a trace.

TransformerEngine, Liger, Megatron and FlashAttention launch kernels of their own inside a function
of `torch.autograd`; its arguments are recorded, its texts (layouts, kinds of masks) are not. Each
formula names its family, that of plain ops of the same meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, bf16, f16, f32, i32, i64
from pyprof.ops.registry import backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import gradients_of, product
from pyprof.ops.torch.linalg.gemm_low_precision import rows_times
from pyprof.ops.torch.nn.attention import Band, heads, packed
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require, row_count, size, twice_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.ops.torch.nn.attention import Heads

_X, _W = bf16(4, 6), bf16(5, 6)
_FLASH = bf16(2, 8, 4, 16)
_TURN = 3
"""Operations per element to rotate it by an angle."""
_SOFTMAX = 24
_LOSS = 26
"""Log-softmax 24, and the gradient that is left in the place of the logits 2."""


def _tensors(a: Args) -> list[Tensor]:
    return [value for value in a.listed("rest") if isinstance(value, Tensor)]


# 2 * 4 heads of 8 * 8 scores, half of them, times 2 * (16 + 16); q, k, v and the result of 1024 of
# 2 bytes
@op(
    *("FlashAttnFunc", "aiter::_flash_attn_forward", "aiter::wrapper_fmha_v3_fwd"),
    family="attention",
    signature="Tensor query, Tensor key, Tensor value, Value[] rest",
    example=Example((_FLASH, _FLASH, _FLASH, 0.0, 0.25, True), flops=16384, bytes=8192, mod=""),
)
def flash(a: Args) -> Work:
    """Flash attention, [batch, sequence, heads, head], in any of its versions."""
    qkv = a.tensor("query"), a.tensor("key"), a.tensor("value")
    return _attention(a, qkv, lambda: heads(*qkv, heads_at=-2))


def _attention(a: Args, qkv: tuple[Tensor, Tensor, Tensor], lengths: Callable[[], Heads]) -> Work:
    q, _, v = qkv
    out = like(q, (*q.shape[:-1], size(v, -1)))
    try:
        h = lengths()
    except Unknown as unknown:
        return Work(None, qkv, (out,), no_flops=str(unknown))
    # the first bool after the tensors, in each version
    causal = next((value for value in a.listed("rest") if isinstance(value, bool)), None)
    if causal is None:
        return Work(None, qkv, (out,), no_flops="causal not recorded")
    band = Band(right=0 if causal else None, from_end=True)
    return Work(h.twice_scores(band) * (h.width + h.value_width), qkv, (out,), h.params(q, band))


# q, k, v and the result of 1024 of 2 bytes; the mask is a text, which is not recorded
@op(
    "FusedAttnFunc",
    family="attention",
    signature="Value[] rest",
    example=Example((True, 8, 8, None, None, None, None, *(_FLASH,) * 3), bytes=8192, mod=""),
)
def te_attention(a: Args) -> Work:
    """TransformerEngine's: queries, keys and values are the first tensors with heads."""
    given = [tensor for tensor in _tensors(a) if has_rank(tensor, 3, or_more=True)][:3]
    require(len(given) == 3)  # noqa: PLR2004 - queries, keys, values
    q, _, v = given
    out = like(q, (*q.shape[:-1], size(v, -1)))
    return Work(None, tuple(given), (out,), no_flops="kind of mask not recorded")


# rows of 6 divided among two experts, each 5 by 6: 2 * 4 * 5 * 6; 24 + 60 + out 20 of 2 bytes
@op(
    "_GroupedLinear",
    family="gemm",
    signature="Tensor x, Value[] rest",
    example=Example((_X, None, _W, _W), flops=240, bytes=208, mod=""),
)
def te_grouped(a: Args) -> Work:
    """TransformerEngine's: each row times the weight of its group."""
    x = a.tensor("x")
    weights = [t for t in _tensors(a) if has_rank(t, 2) and t.shape[1] == size(x, -1)]
    require(weights and len({t.shape for t in weights}) == 1)
    n, k = weights[0].shape
    rows = x.numel // max(1, k)
    work = product(x, weights[0], fresh((*x.shape[:-1], n), x.dtype), rows, n, k)
    return Work(work.flops, (x, *weights), work.writes, work.params)


# twice as many; go 20, 24 and 60 read, 24 and 60 written of 2 bytes
backward_of(te_grouped, flops=480, bytes=376)(twice_of(te_grouped))


# a first product 2 * 4 * 10 * 6 and, of half as wide what is gated, a second 2 * 4 * 6 * 5; 24, 6,
# 60, 30 and the result's 24 of 2 bytes
@op(
    "_LayerNormMLP",
    family="gemm",
    signature="Tensor x, Tensor norm, Tensor? shift, Tensor up, Value[] rest",
    example=Example(
        (_X, bf16(6), None, bf16(10, 6), None, bf16(6, 5)), flops=720, bytes=288, mod=""
    ),
)
def te_mlp(a: Args) -> Work:
    """TransformerEngine's norm and both layers; the norm and the activation are not counted."""
    x, up = a.tensor("x"), a.tensor("up")
    matrices = [t for t in _tensors(a) if has_rank(t, 2)]
    require(matrices and size(up, -1) == size(x, -1) and matrices[0].shape[0] == size(x, -1))
    down = matrices[0]
    rows = row_count(x)
    flops = 2 * rows * (up.numel + down.numel)
    return Work(flops, (x, *a.present("norm", "shift"), up, down), (like(x),))


# 2 * 1 * 4 heads of 8, half of each turned: 32 * 3; 64 read and written of 2 bytes, 2 angles of 4
# of 4
@op(
    *("FusedRoPEFunc", "fused_rope"),
    family="pointwise",
    signature="Tensor x, Tensor angles",
    example=Example((bf16(2, 1, 4, 8), f32(2, 1, 1, 4)), flops=96, bytes=288, mod=""),
)
def fused_rope(a: Args) -> Work:
    """The first part of each head rotated by its position's angles, the rest copied."""
    x, angles = a.tensor("x"), a.tensor("angles")
    width, turns = size(x, -1), size(angles, -1)
    require(0 < turns <= width)
    rows = fresh((min(angles.numel, x.numel // width * turns),), angles.dtype)
    return Work(_TURN * (x.numel // width * turns), (x, rows), (like(x),))


# 24 * 26; 24 read and written of 2 bytes, 4 targets of 8 read, 4 losses of 4 written
@op(
    *("LigerCrossEntropyFunction", "CrossEntropyFunction"),
    family="loss",
    signature="Tensor input, Tensor target",
    example=Example((_X, i64(4)), flops=624, bytes=144, mod=""),
)
# logits of 4 * 5, each 26; 20 read and written of 2 bytes, 4 targets of 8 read, 4 losses of 4
# written: products are ops of their own
@op(
    "LigerFusedLinearCrossEntropyFunction",
    family="loss",
    signature="Tensor input, Tensor weight, Tensor target",
    example=Example((_X, _W, i64(4)), flops=520, bytes=128, mod=""),
)
def cross_entropy(a: Args) -> Work:
    """Cross entropy and, over the logits, its gradient, which the forward pass leaves there.

    The logits may be a product, whose chunks are ops inside.
    """
    x, target = a.tensor("input"), a.tensor("target")
    rows = row_count(x)
    if a.op == "LigerFusedLinearCrossEntropyFunction":
        x = fresh((rows, size(a.tensor("weight"), 0)), x.dtype)
    else:
        require(target.numel == rows)
    return Work(_LOSS * x.numel, (x, target), (like(x), fresh((rows,), "float32")))


_SCORES = f16(2, 3, 4)


# 24 * 25: softmax and a scale; 24 read and written of 2 bytes
@op(
    *("ScaledSoftmax", "ScaledUpperTriangMaskedSoftmax", "ScaledMaskedSoftmax"),
    *("ScaledAlignedCausalMaskedSoftmax", "GenericScaledMaskedSoftmax"),
    *("te_softmax::scaled_softmax_fwd", "te_softmax::scaled_masked_softmax_fwd"),
    "te_softmax::scaled_upper_triang_masked_softmax_fwd",
    "te_softmax::scaled_aligned_causal_masked_softmax_fwd",
    family="softmax",
    signature="Tensor input, Tensor? mask",
    example=Example((_SCORES, 0.5), flops=600, bytes=96, mod=""),
)
# not scaled: 24 * 24
@op(
    "LigerSoftmaxFunction",
    family="softmax",
    signature="Tensor input",
    example=Example((_SCORES,), flops=576, bytes=96, mod=""),
)
def softmax(a: Args) -> Work:
    """Megatron's and Apex's softmax of scaled scores, masked or not; Liger's of plain ones."""
    x = a.tensor("input")
    masks = tuple(mask for mask in a.present("mask") if mask.shape)
    each = _SOFTMAX + (a.op != "LigerSoftmaxFunction")
    return Work(each * x.numel, (x, *masks), (like(x),))


# 48 additions of a bias, 24 * 22 of the gated activation; 48 and 12 read, 24 written of 2 bytes
@op(
    *("BiasSwiGLUFunction", "SwiGLUFunction", "BiasGeGLUFunction"),
    family="pointwise",
    signature="Tensor input, Tensor? bias",
    example=Example((bf16(4, 12), bf16(12)), flops=576, bytes=168, mod=""),
)
def megatron_gated(a: Args) -> Work:
    """Megatron's gated activations, the bias of both halves added first."""
    x = a.tensor("input")
    biases = tuple(bias for bias in a.present("bias") if bias.shape)
    require(all(t.shape == x.shape[-1:] for t in biases))
    out = like(x, (*x.shape[:-1], size(x, -1) // 2))
    each = 25 if "Ge" in a.op else 22
    return Work(each * out.numel + x.numel * bool(biases), (x, *biases), (out,))


# 24 * 5: softmax's gradient and the scale; go, y read and 24 written of 2 bytes
@op(
    *("te_softmax::scaled_softmax_bwd", "te_softmax::scaled_masked_softmax_bwd"),
    "te_softmax::scaled_upper_triang_masked_softmax_bwd",
    "te_softmax::scaled_aligned_causal_masked_softmax_bwd",
    family="softmax",
    signature="Tensor grad_output, Tensor output",
    example=Example((_SCORES, _SCORES, 0.5), flops=120, bytes=144),
)
def scaled_softmax_backward(a: Args) -> Work:
    """The gradient of scaled scores."""
    go, y = a.tensor("grad_output"), a.tensor("output")
    return Work(5 * go.numel, (go, y), (like(go),))


# 2 * 4 * 5 * 6; 24 + 30 + 5 + out 20 of 2 bytes
@op(
    "LinearWithGradAccumulationAndAsyncCommunication",
    family="gemm",
    signature=(
        "Tensor input, Tensor weight, Tensor? bias, any accumulates, any reduces, bool sequence"
    ),
    example=Example((_X, _W, bf16(5), True, False, False), flops=240, bytes=158, mod=""),
)
def megatron_linear(a: Args) -> Work:
    """Megatron's linear layer; with sequence parallelism it gathers the rows of all ranks first."""
    x, w = a.tensor("input"), a.tensor("weight")
    require(has_rank(w, 2) and size(x, -1) == w.shape[1])
    if not a.known("sequence") or a.flag("sequence", default=False):
        raise Unknown("how many rows all ranks have is not recorded")
    return rows_times(x, w, w.shape[0], *a.present("bias"))


# both gradients, 240 each; go 20 + w 30 + dx 24, go 20 + x 24 + dw 30 of 2 bytes
backward_of(megatron_linear, flops=480, bytes=296)(gradients_of(megatron_linear))


# 24 read and written of 2 bytes, 2 sizes of 8 and 2 numbers of 4
@op(
    *("te_moe::chunk_sort_fwd", "_moe_chunk_sort"),
    family="moe",
    signature="Tensor input, Tensor sizes, Tensor order, Tensor? weights",
    example=Example((_X, i64(2), i32(2), None), flops=0, bytes=120),
)
def te_sort_chunks(a: Args) -> Work:
    """TransformerEngine's: chunks of rows in another order."""
    x, sizes, order = a.tensor("input"), a.tensor("sizes"), a.tensor("order")
    weights = a.present("weights")
    return Work(0, (x, *weights, sizes, order), (like(x), *map(like, weights)))


# 24 * (22 + 1); 48 and 4 weights read, 24 written of 2 bytes
@op(
    "WeightedSwiGLUFunction",
    family="pointwise",
    signature="Tensor input, Tensor weights",
    example=Example((bf16(4, 12), bf16(4, 1), False), flops=552, bytes=152, mod=""),
)
def megatron_weighed(a: Args) -> Work:
    """Megatron's gated activation of experts, times each token's weight."""
    x, weights = a.tensor("input"), a.tensor("weights")
    out = like(x, (*x.shape[:-1], size(x, -1) // 2))
    require(weights.numel * size(out, -1) == out.numel)
    return Work(23 * out.numel, (x, weights), (out,))


_COSINES = f32(8, 1, 1, 4)


# 2 tokens of 4 heads, 4 of each turned: 32 * 3; 32 read and written of 2 bytes, 2 rows of 4 of
# cosines and sines of 4
@op(
    "ApplyMLARotaryEmbQ",
    family="pointwise",
    signature="Tensor query, Tensor cosine, Tensor sine",
    example=Example(
        (bf16(2, 1, 4, 12), _COSINES, _COSINES, 8, 4, None, False), flops=96, bytes=192, mod=""
    ),
)
def mla_turned_queries(a: Args) -> Work:
    """Megatron's: the last part of each head of latent attention's queries, turned in place."""
    q, tables = a.tensor("query"), (a.tensor("cosine"), a.tensor("sine"))
    turns, width = size(tables[0], -1), size(q, -1)
    require(0 < turns <= width and has_rank(q, 3, or_more=True))  # tokens, heads, head
    turned = fresh((q.numel // width * turns,), q.dtype)
    tokens = q.numel // (width * max(1, size(q, -2)))
    rows = tuple(fresh((min(tokens * turns, t.numel),), t.dtype) for t in tables)
    return Work(_TURN * turned.numel, (turned, *rows), (turned,))


# gradients are turned back, in place
backward_of(mla_turned_queries, flops=96, bytes=192)(mla_turned_queries)


# 2 tokens: 4 of a key turned once: 8 * 3; 2 heads of 8 + 6 and 8 turned read of 2 bytes, 2 rows of
# 4 of cosines and sines of 4; 2 heads of 12 and of 6 written of 2
@op(
    "ApplyMLARotaryEmbKV",
    family="pointwise",
    signature=(
        "Tensor latent, Tensor turned, Tensor cosine, Tensor sine, int turns, int key, int value"
    ),
    example=Example(
        (bf16(2, 1, 2, 14), bf16(2, 1, 1, 4), _COSINES, _COSINES, 4, 8, 6, None, False),
        flops=24,
        bytes=336,
        mod="",
    ),
)
def mla_keys_and_values(a: Args) -> Work:
    """Megatron's: keys with the turned part that all heads share, and values, side by side."""
    kv, turned, tables = a.tensor("latent"), a.tensor("turned"), ("cosine", "sine")
    turns, key, value = (a.integer(name, 0) for name in ("turns", "key", "value"))
    require(
        min(turns, key, value) > 0 and size(kv, -1) == key + value and size(turned, -1) == turns
    )
    rows = (
        fresh((min(turned.numel, table.numel),), table.dtype) for table in map(a.tensor, tables)
    )
    writes = (like(kv, (*kv.shape[:-1], key + turns)), like(kv, (*kv.shape[:-1], value)))
    return Work(_TURN * turned.numel, (kv, turned, *rows), writes)


_PACKED, _STARTS = bf16(16, 4, 16), i32(3)


# two sequences of 8, 4 heads of 8 * 8 scores each, half of them, times 2 * (16 + 16); q, k, v and
# the result of 1024 of 2 bytes
@op(
    "FlashAttnVarlenFunc",
    family="attention",
    signature="Tensor query, Tensor key, Tensor value, Tensor cum_q, Tensor cum_k, Value[] rest",
    example=Example(
        (_PACKED, _PACKED, _PACKED, _STARTS, _STARTS, 8, 8, 0.0, 0.25, True),
        flops=16384,
        bytes=8192,
        mod="",
    ),
)
@op(
    "FlashAttnVarlenQKVPackedFunc",
    family="attention",
    signature="Tensor packed, Tensor cum_q, Value[] rest",
    example=Example(
        (bf16(16, 3, 4, 16), _STARTS, 8, 0.0, 0.25, True), flops=16384, bytes=8192, mod=""
    ),
)
def flash_varlen(a: Args) -> Work:
    """Flash attention of sequences laid end to end; their lengths are known if all are equal.

    Queries, keys and values may be one tensor [tokens, 3, heads, head].
    """
    if (together := a.optional("packed")) is not None:
        require(has_rank(together, 4) and together.shape[1] == 3)  # noqa: PLR2004 - q, k, v
        qkv = (like(together, (together.shape[0], *together.shape[2:])),) * 3
    else:
        qkv = a.tensor("query"), a.tensor("key"), a.tensor("value")
    longest = [value for value in a.listed("rest") if type(value) is int][:2]
    if any("int" in (tensor.dtype or "") for tensor in _tensors(a)):
        longest = []  # parts used, or pages of a cache, whose lengths are on the GPU
    stated = {"max_q": longest[0], "max_k": longest[-1]} if longest else {}
    return _attention(a, qkv, lambda: packed(a.replaced(**stated), *qkv, a.tensor("cum_q")))


# five products of half of 16384; go, q, k, v, out read, dq, dk, dv written
@backward_of(flash_varlen, flops=40960, bytes=16384)
@backward_of(flash, flops=40960, bytes=16384)
def flash_backward(a: Args) -> Work:
    """The gradients of queries, keys and values, the scores computed again."""
    work = flash_varlen(a) if "cum_q" in a.values else flash(a)
    (out,), given = work.writes, work.reads
    flops = None if work.flops is None else work.flops * 5 // 2
    grads = tuple(map(like, given))
    return Work(flops, (out, out, *given), grads, work.params, no_flops=work.no_flops)
