"""Whole layers of experts: both products of the chosen ones, their activation, and their sum.

A token goes through k of E experts, each of which is two products with a gated activation between
them: 2 T k (2 I H + I H) operations for T tokens, hidden width H and width I inside an expert. The
activation is not counted. Bytes: tokens read and the result written once; the weights of the most
experts that the choices can reach, min(E, T k): how many they do reach depends on the data.

Where the weights are not arguments, as in `vllm::moe_forward`, their sizes come from the model's
configuration, which the user passes. If attention has only a part of the model's heads, a rank has
that part of each layer: of an expert's width or, on average, of the experts. If a rank holds only
some experts, how many choices fall to it is not recorded: the FLOPs are unknown.
"""

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, bf16, f8, f32, i32
from pyprof.ops.model_config import CONTRADICTS, ModelConfig, is_padded
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, CallContext, Work, fresh, has_rank, like, require, row_count, size

FAMILY = "moe"

_X, _X8, _GATES, _GATES32 = bf16(4, 6), f8(4, 6), bf16(4, 8), f32(4, 8)
_CHOSEN, _IDS, _SORTED = f32(4, 2), i32(4, 2), i32(64)
_UP, _DOWN = bf16(8, 10, 6), bf16(8, 6, 5)
_MODEL = ModelConfig(hidden=6, expert_intermediate=5, experts=8, experts_per_token=2)

_GATED = 3
"""Matrices of an expert: two before the gate, one after it."""

# how many bytes weights take, as (numerator, denominator) a number: with a scale for each group
_STORED = {
    "mxfp4": (17, 32),  # 4 bits, and a byte for 32
    "nvfp4": (9, 16),  # 4 bits, and a byte for 16
    "mxfp8": (33, 32),
    "fp8": (1, 1),
    "int8": (1, 1),
    "int4": (1, 2),
}


def chosen_weights(weights: Tensor, choices: int) -> Tensor:
    """Return what is read of weights [experts, ..]: no more experts than there are choices."""
    return like(weights, (min(size(weights, 0), choices), *weights.shape[1:]))


def _weight_bytes(count: int, kind: str, dtype: str | None) -> int | None:
    """Return the bytes of `count` weights; None if it is unknown how they are stored.

    `kind` is how, by configuration or kernel; "" if plainly as `dtype`.
    """
    for name, (top, bottom) in _STORED.items():
        if kind.startswith(name):
            return -(-count * top // bottom)
    width = dtypes.item_size(kind) if kind else dtypes.item_size(dtype)
    return None if width is None else count * width


# 2 * 4 tokens * 2 experts * 3 * 6 * 5 = 1440; tokens 24 read and 24 written, 32 gates of 2 bytes, 8
# experts of 90 weights of 2
@op(
    *("vllm::moe_forward", "vllm::moe_forward_shared", "vllm::moe_forward_shared_inplace"),
    signature="Tensor input, Tensor gates",
    example=Example((_X, _GATES, None, None), flops=1440, bytes=1600),
    context=CallContext(model=_MODEL),
)
@op(
    "sglang::fused_moe_bypassed_piecewise_cuda_graph_impl",
    signature="Tensor input, Tensor gates, int chosen",
    example=Example((_X, _GATES, 2), flops=1440, bytes=1600),
    context=CallContext(model=_MODEL),
)
# 8 expert ids of 4 bytes in place of the gates
@op(
    *("vllm::transformers_moe_forward", "sglang::transformers_moe_forward"),
    signature="Tensor input, Tensor choices",
    example=Example((_X, _IDS, _CHOSEN, "layers.0"), flops=1440, bytes=1568),
    context=CallContext(model=_MODEL),
)
@op(
    "sglang::moe_forward_piecewise_cuda_graph_impl",
    signature="Tensor input, Tensor weights, Tensor choices",
    example=Example((_X, _CHOSEN, _IDS, _GATES, 0), flops=1440, bytes=1568),
    context=CallContext(model=_MODEL),
)
def moe_forward(a: Args) -> Work:
    """A layer of experts by name; shared experts, if any, are ops of their own."""
    x, (gates,) = a.tensor("input"), a.present("gates", "choices")
    model = a.model("widths of the experts' weights")
    hidden, inner, experts, chosen = _sizes(model)
    _check(x, a.optional("gates"), model)
    # raise Unknown if the recorded number of experts per token is another model's
    choices = a.optional("choices")
    recorded = size(choices, -1) if choices is not None else a.values.get("chosen")
    if type(recorded) is int and recorded != chosen:
        raise Unknown(f"{CONTRADICTS}: {chosen} experts per token, recorded {recorded}")
    tokens = row_count(x)
    ranks = a.context.ranks
    flops = 2 * _GATED * tokens * chosen * hidden * inner // ranks
    kind = a.context.weights or model.weights
    moved = _weight_bytes(
        min(experts, tokens * chosen) * _GATED * hidden * inner // ranks, kind, x.dtype
    )
    params: dict[str, object] = {"T": tokens, "E": experts, "k": chosen, "H": hidden, "I": inner}
    params["type"] = x.dtype
    padded = f" (recorded {x.shape[-1]}: padded)" if x.shape[-1] != hidden else ""
    via = f"widths of config.json: hidden {hidden}{padded}, inside an expert {inner}"
    if ranks > 1:
        via += f", 1/{ranks} of it on this rank, as for the heads"
    why = f"how weights of {kind or 'unknown dtype'} are stored is unknown" if moved is None else ""
    return Work(
        *(flops, (x, gates), (like(x),), params, moved or 0, why), via=via, stages=(_GATED - 1, 1)
    )


def _sizes(model: ModelConfig) -> tuple[int, int, int, int]:
    dimensions = (model.hidden, model.expert_intermediate, model.experts, model.experts_per_token)
    names = ("hidden_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok")
    missing = [name for name, value in zip(names, dimensions, strict=True) if value is None]
    if missing:
        raise Unknown(f"config.json does not state {', '.join(missing)}")
    hidden, inner, experts, chosen = (value or 0 for value in dimensions)
    return hidden, inner, experts, chosen


def _check(x: Tensor, gates: Tensor | None, model: ModelConfig) -> None:
    """Raise Unknown if the recorded sizes cannot be those of the model."""
    hidden, experts = model.hidden or 0, model.experts or 0
    if not is_padded(size(x, -1), hidden):
        raise Unknown(f"{CONTRADICTS}: hidden_size {hidden}, recorded activations of {size(x, -1)}")
    if gates is not None and size(gates, -1) not in (experts, hidden, size(x, -1)):
        raise Unknown(f"{CONTRADICTS}: {experts} experts, recorded gates of {size(gates, -1)}")


# 2 * 4 * 2 * (10 * 6 + 6 * 5) = 1440; tokens 24 and 24, 8 experts of 90 of 2 bytes, 8 weights and
# 8 expert ids of 4
@op(
    *("vllm::fused_experts", "vllm::inplace_fused_experts", "vllm::outplace_fused_experts"),
    *("sglang::inplace_fused_experts", "sglang::outplace_fused_experts", "aiter::fused_moe_"),
    *("vllm::rocm_aiter_fused_moe", "vllm::rocm_aiter_asm_moe_tkw1", "aiter::fused_moe"),
    signature=(
        "Tensor input, Tensor up, Tensor down, Tensor weights, Tensor experts, Value[] rest"
    ),
    example=Example((_X, _UP, _DOWN, _CHOSEN, _IDS), flops=1440, bytes=1600),
)
@op(
    "LigerFusedMoEFunction",
    signature="Tensor input, Tensor up, Tensor down, Tensor experts, Tensor weights",
    example=Example((_X, _UP, _DOWN, _IDS, _CHOSEN), flops=1440, bytes=1600, mod=""),
)
def fused_experts(a: Args) -> Work:
    """Both products of the chosen experts; scales and biases of experts are read with them."""
    x, ids = a.tensor("input"), a.tensor("experts")
    work = _experts(a, x, ids.numel, (x, a.tensor("weights"), ids))
    # vLLM states how many experts all ranks have: the first integer of the rest
    stated = [v for v in a.listed("rest") if type(v) is int] if "fused_experts" in a.op else []
    if stated and stated[0] > size(a.tensor("up"), 0):
        return replace(work, flops=None, no_flops=ELSEWHERE, stages=())
    return work


ELSEWHERE = "how many tokens go to this rank's experts is not recorded"


# as above: 8 of the 64 sorted positions are tokens' choices, 4 bytes each with their weights
@op(
    *("aiter::fmoe_g1u1", "aiter::fmoe", "aiter::fmoe_g1u1_tkw1", "aiter::fmoe_g1u1_a16"),
    *("aiter::fmoe_int8_g1u0", "aiter::fmoe_int8_g1u0_a16", "aiter::fmoe_fp8_blockscale_g1u1"),
    signature=(
        "Tensor out, Tensor input, Tensor up, Tensor down, Tensor sorted, Tensor weights,"
        "Tensor sorted_experts, Tensor valid, int chosen, Value[] rest"
    ),
    example=Example(
        (_X, _X, _UP, _DOWN, _SORTED, _CHOSEN, _SORTED, i32(1), 2), flops=1440, bytes=1600
    ),
)
def sorted_experts(a: Args) -> Work:
    """The same for tokens that were sorted by their experts."""
    x = a.tensor("input")
    choices = row_count(x) * a.integer("chosen", 0)
    if not choices:
        raise Unknown("experts of a token not recorded")
    routes = (fresh((choices,), "int32"), fresh((choices,), "float32"))
    return _experts(a, x, choices, (x, *routes), a.optional("out"))


def _experts(
    a: Args, x: Tensor, choices: int, reads: tuple[Tensor, ...], out: Tensor | None = None
) -> Work:
    """Return the work of `choices` choices of experts, whose weights are [E, rows, columns]."""
    up, down, hidden = a.tensor("up"), a.tensor("down"), size(x, -1)
    require(has_rank(up, 3) and has_rank(down, 3) and up.shape[0] == down.shape[0])
    experts, rows = up.shape[0], up.shape[1]
    inner = rows if a.op.endswith("g1u0") or "g1u0" in a.op or a.op == "fmoe" else rows // 2
    flops = 2 * choices * hidden * (rows + inner)
    rest = (value for value in a.listed("rest") if isinstance(value, Tensor))
    kept = [up, down, *(t for t in rest if t.shape[:1] == (experts,))]
    weights = tuple(chosen_weights(t, choices) for t in kept)
    tokens = x.numel // max(1, hidden)
    narrow = x.dtype is not None and (x.dtype.startswith("float8") or "int8" in x.dtype)
    result = out or fresh(x.shape, "bfloat16" if narrow else x.dtype)
    params: dict[str, object] = {"T": tokens, "E": experts, "k": choices // max(1, tokens)}
    params |= {"H": hidden, "I": inner, "type": x.dtype}
    return Work(flops, reads + weights, (result,), params, stages=(rows, inner))


_TILE = 16
_UP4, _DOWN4, _SCALES4 = i32(8, 1, 64), i32(8, 1, 12), (bf16(8, 1, 32), bf16(8, 1, 6))


# two products of 4 tokens with 2 experts each, I 16 and H 6: 2 * 8 * (32 * 6 + 16 * 6); 24 and 24
# of 2 bytes, 8 experts' 64 and 12 of 4, their scales 32 and 6 of 2, 8 weights and 8 numbers of 4
@op(
    *("vllm::fused_marlin_moe", "sglang::fused_marlin_moe"),
    signature=(
        (
            "Tensor input, Tensor! up, Tensor! down, Tensor? up_bias, Tensor? down_bias,"
            "Tensor! up_scale, Tensor! down_scale, Tensor? gates, Tensor! weights, Tensor! experts,"
            "int kind"
        ),
        (
            "Tensor input, Tensor! up, Tensor! down, Tensor! up_scale, Tensor! down_scale,"
            "Tensor? gates, Tensor! weights, Tensor! experts, int count"
        ),
    ),
    example=Example(
        (_X, _UP4, _DOWN4, *_SCALES4, _GATES32, _CHOSEN, _IDS, 8),
        flops=4608,
        bytes=48 * 2 + 8 * (64 + 12) * 4 + 8 * (32 + 6) * 2 + 8 * 4 + 8 * 4,
    ),
)
def marlin_experts(a: Args) -> Work:
    """Both products, weights in Marlin's order: tiles of 16 inputs, and so many of the outputs."""
    x, up, down, ids = (a.tensor(name) for name in ("input", "up", "down", "experts"))
    hidden, wide = size(x, -1), size(down, -1)
    require(has_rank(up, 3) and has_rank(down, 3) and wide)
    inner, rows = down.shape[1] * _TILE, up.shape[2] * hidden // wide
    choices = ids.numel
    kept = (up, down, *a.present("up_scale", "down_scale", "up_bias", "down_bias"))
    reads = (x, *(chosen_weights(t, choices) for t in kept), a.tensor("weights"), ids)
    params: dict[str, object] = {"T": size(x, 0), "E": size(up, 0), "H": hidden, "I": inner}
    flops = 2 * choices * hidden * (rows + inner)
    return Work(flops, reads, (like(x),), params, stages=(rows, inner))


_SHARES = "int count, int chosen, int groups, int top_groups, int inner, int offset, int held"
_UP8, _DOWN8, _BLOCK_SCALES = f8(8, 10, 6), f8(8, 6, 5), f32(8, 1, 1)
_BLOCKS = (_UP8, _BLOCK_SCALES, _DOWN8, _BLOCK_SCALES)
_HELD = (8, 2, 1, 1, 5, 0, 8)


# two products of 4 tokens with 2 of 8 experts: 2 * 8 * (10 * 6 + 6 * 5); gates 32 of 4 bytes, 24 of
# 1, weights of 90 of 1 and two scales of 4 of 8 experts, 24 written of 2
@op(
    "vllm::flashinfer_fused_moe_blockscale_fp8",
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor up, Tensor? up_scale, Tensor down,"
        f"Tensor? down_scale, {_SHARES}"
    ),
    example=Example((_GATES32, None, _X8, *_BLOCKS, *_HELD), flops=1440, bytes=984),
)
# 4 scales of tokens of 4
@op(
    "sglang::trtllm_fp8_block_scale_moe_wrapper",
    "sglang::trtllm_fp8_block_scale_routed_moe_wrapper",
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor? scale_a, Tensor up, Tensor? up_scale,"
        f"Tensor down, Tensor? down_scale, {_SHARES}"
    ),
    example=Example((_GATES32, None, _X8, f32(4, 1), *_BLOCKS, *_HELD), flops=1440, bytes=1000),
)
# three scales of 4 of 8 experts, one of all tokens
@op(
    *("vllm::fi_trtllm_fp8_per_tensor_moe", "vllm::flashinfer_fused_moe_per_tensor_scale_fp8"),
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor? scale_a, Tensor up, Tensor down,"
        f"Tensor? up_scale, Tensor? gate_scale, Tensor? down_scale, {_SHARES}"
    ),
    example=Example(
        (_GATES32, None, _X8, f32(1), _UP8, _DOWN8, *(f32(8),) * 3, *_HELD), flops=1440, bytes=1020
    ),
)
@op(
    "sglang::trtllm_fp8_per_tensor_scale_moe_wrapper",
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor up, Tensor? up_scale, Tensor? gate_scale,"
        f"Tensor down, Tensor? down_scale, {_SHARES}"
    ),
    # without the tokens' scale
    example=Example(
        (_GATES32, None, _X8, _UP8, *(f32(8),) * 2, _DOWN8, f32(8), *_HELD), flops=1440, bytes=1016
    ),
)
def trtllm_experts(a: Args) -> Work:
    """TensorRT-LLM's experts: routing, both products and their sum; routing is not counted."""
    x, up, down, gates = (a.tensor(name) for name in ("input", "up", "down", "gates"))
    hidden, chosen, inner = size(x, -1), a.integer("chosen", 0), a.integer("inner", 0)
    tokens = x.numel // max(1, hidden)
    experts, rest = size(up, 0), up.numel // max(1, size(up, 0) * hidden)
    require(chosen and inner and down.numel == experts * inner * hidden)
    scales = ("up_scale", "gate_scale", "down_scale")
    kept = tuple(chosen_weights(t, tokens * chosen) for t in (up, down, *a.present(*scales)))
    params: dict[str, object] = {"T": tokens, "E": experts, "k": chosen, "H": hidden, "I": inner}
    out = fresh(x.shape, "bfloat16")
    work = Work(
        2 * tokens * chosen * hidden * (rest + inner),
        (gates, x, *a.present("bias", "scale_a"), *kept),
        (out,),
        params,
        stages=(rest, inner),
    )
    if a.integer("count", experts) != experts:
        return replace(work, flops=None, no_flops=ELSEWHERE, stages=())
    return work
