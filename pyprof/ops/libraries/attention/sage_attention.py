"""SageAttention: scores of int8 queries and keys, sums of values in float16 or float8.

The operations are those of any attention, in narrower types. Bytes: what is given read once, the
result written once; quantizing is done by kernels before.
"""

from itertools import product

from pyprof.ops.examples import Example, f8, f16, f32, i8
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.nn.attention import Band, heads
from pyprof.ops.work import Args, Work, fresh

FAMILY = "attention"

_NAMESPACES = ("sageattention", "sageattention_sm80", "sageattention_sm89", "sageattention_sm90")
_HALF = ("f16_accum_f32", "f16_accum_f16")
_NARROW = ("f8_accum_f32", "f8_accum_f16")
_ENDS = ("attn", "attn_inst_buf")


def _names(sums: tuple[str, ...], fused: str = "") -> list[str]:
    parts = product(_NAMESPACES, sums, _ENDS)
    return [f"{space}::qk_int8_sv_{kind}_{fused}{end}" for space, kind, end in parts]


_GIVEN = (
    "Tensor query, Tensor key, Tensor value, Tensor output, Tensor query_scale, Tensor key_scale"
)
_SAYS = "int tensor_layout, int is_causal, int qk_quant_gran, float sm_scale, int return_lse"
# batch, heads, tokens, head
_Q, _V, _OUT = i8(2, 4, 8, 16), f16(2, 4, 8, 16), f16(2, 4, 8, 16)
_V8 = f8(2, 4, 16, 64)  # transposed, its tokens padded
_SCALES, _WIDE = f32(2, 4, 1), f32(2, 4, 16)
_HND = 1


# 2 * 4 heads of 8 * 8 scores, times 2 * (16 + 16); queries and keys of 1024 bytes, values and
# result of 2048, scales of 32 each
@op(
    *_names((*_HALF, *_NARROW)),
    signature=f"{_GIVEN}, {_SAYS}",
    example=Example(
        (_Q, _Q, _V, _OUT, _SCALES, _SCALES, 1, 0, 2, 0.25, 0), flops=32768, bytes=6208
    ),
)
# and a mean of 512 bytes
@op(
    *_names(_HALF, "fuse_v_mean_"),
    signature=f"{_GIVEN}, Tensor value_mean, {_SAYS}",
    example=Example(
        (_Q, _Q, _V, _OUT, _SCALES, _SCALES, _WIDE, 1, 1, 2, 0.25, 0),
        flops=16384,
        bytes=6720,
        op="qk_int8_sv_f16_accum_f16_fuse_v_mean_attn",
        mod="sageattention_sm80",
    ),
)
# values of 4 heads of 16 x 8 of the 16 x 64 of 1 byte, and a scale of 512 bytes
@op(
    *_names(_NARROW, "fuse_v_scale_"),
    signature=f"{_GIVEN}, Tensor value_scale, {_SAYS}",
    example=Example(
        (_Q, _Q, _V8, _OUT, _SCALES, _SCALES, _WIDE, 1, 0, 2, 0.25, 0),
        flops=32768,
        bytes=5696,
        mod="sageattention_sm89",
    ),
)
# two such vectors, and of each query the sum of its exponentials: 64 of 4 bytes
@op(
    *_names(_NARROW, "fuse_v_scale_fuse_v_mean_"),
    signature=f"{_GIVEN}, Tensor value_scale, Tensor value_mean, {_SAYS}",
    example=Example(
        (_Q, _Q, _V8, _OUT, _SCALES, _SCALES, _WIDE, _WIDE, 1, 0, 2, 0.25, 1),
        flops=32768,
        bytes=6464,
        mod="sageattention_sm89",
    ),
)
def sage(a: Args) -> Work:
    """Attention of quantized queries and keys, laid out by `tensor_layout`."""
    q, k, v, out = (a.tensor(name) for name in ("query", "key", "value", "output"))
    # values may be transposed and then padded: only as many as there are keys are used
    used = fresh(k.shape, v.dtype)
    scales = a.present("query_scale", "key_scale", "value_scale", "value_mean")
    reads = (q, k, used, *scales)
    try:
        heads_at = -3 if a.integer("tensor_layout", _HND) == _HND else -2
        band = Band(right=0 if a.integer("is_causal", 0) else None)
        with_sums = a.integer("return_lse", 0) != 0
    except Unknown as unknown:
        return Work(None, reads, (out,), no_flops=str(unknown))
    h = heads(q, k, k, heads_at=heads_at)
    sums = (fresh((h.batch, h.heads, h.queries), "float32"),) * with_sums
    flops = h.twice_scores(band) * (h.width + h.value_width)
    return Work(flops, reads, (out, *sums), h.params(q, band))
