"""Mixtures of experts: routing, the experts' products, and the sum of what they give.

A token goes through k of E experts, each of which is two products with a gated activation between
them: 2 T k (2 I H + I H) operations for T tokens, hidden width H and width I inside an expert. The
activation is not counted. Bytes: tokens read and the result written once; of the weights those of
min(E, T k) experts, as many as there are choices at most: which ones, the data decide.

Where the weights are no arguments, as of `vllm::moe_forward`, their sizes are those of the model's
configuration, which the user gives. Where attention has but a part of the model's heads, a rank has
that part of each layer: of an expert's width or, on average, of the experts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, bf16, f8, f32, i16, i32, u8
from pyprof.ops.model_config import CONTRADICTS, ModelConfig, is_padded
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.indexing import picked
from pyprof.ops.work import Args, Setting, Work, fresh, has_rank, like, require, size

if TYPE_CHECKING:
    from collections.abc import Iterable

FAMILY = "moe"

_X = bf16(4, 6)
_GATES = bf16(4, 8)
_UP, _DOWN = bf16(8, 10, 6), bf16(8, 6, 5)
_CHOSEN, _IDS = f32(4, 2), i32(4, 2)
_SORTED = i32(64)
_MODEL = ModelConfig(hidden=6, expert_intermediate=5, experts=8, experts_per_token=2)

_GATED = 3
"""Matrices of an expert: two before the gate, one behind it."""

# how many bytes weights take, as (numerator, denominator) a number: with a scale for each group
_STORED = {
    "mxfp4": (17, 32),  # 4 bits, and a byte for 32
    "nvfp4": (9, 16),  # 4 bits, and a byte for 16
    "mxfp8": (33, 32),
    "fp8": (1, 1),
    "int8": (1, 1),
    "int4": (1, 2),
}


def _weight_bytes(count: int, kind: str, dtype: str | None) -> int | None:
    """Give the bytes of so many weights; None where it is not known how they are stored.

    `kind` is how, by configuration or kernel; else each is a number of `dtype`.
    """
    for name, (top, bottom) in _STORED.items():
        if kind.startswith(name):
            return -(-count * top // bottom)
    width = dtypes.item_size(kind) if kind else dtypes.item_size(dtype)
    return None if width is None else count * width


# --- experts whose weights are no arguments ------------------------------------------------------


# 2 * 4 tokens * 2 experts * 3 * 6 * 5 = 1440; tokens 24 read and 24 written, 32 gates of 2 bytes, 8
# experts of 90 weights of 2
@op(
    *("vllm::moe_forward", "vllm::moe_forward_shared", "vllm::moe_forward_shared_inplace"),
    signature="Tensor input, Tensor gates",
    example=Example((_X, _GATES, None, None), flops=1440, bytes=1600),
    setting=Setting(model=_MODEL),
)
@op(
    "sglang::fused_moe_bypassed_piecewise_cuda_graph_impl",
    signature="Tensor input, Tensor gates, int chosen",
    example=Example((_X, _GATES, 2), flops=1440, bytes=1600),
    setting=Setting(model=_MODEL),
)
# 8 numbers of experts of 4 bytes in place of the gates
@op(
    *("vllm::transformers_moe_forward", "sglang::transformers_moe_forward"),
    signature="Tensor input, Tensor choices",
    example=Example((_X, _IDS, _CHOSEN, "layers.0"), flops=1440, bytes=1568),
    setting=Setting(model=_MODEL),
)
@op(
    "sglang::moe_forward_piecewise_cuda_graph_impl",
    signature="Tensor input, Tensor weights, Tensor choices",
    example=Example((_X, _CHOSEN, _IDS, _GATES, 0), flops=1440, bytes=1568),
    setting=Setting(model=_MODEL),
)
def moe_forward(a: Args) -> Work:
    """A layer of experts by name; shared ones beside them, if any, are ops of their own."""
    x, (gates,) = a.tensor("input"), a.present("gates", "choices")
    model = a.model("widths of the experts' weights")
    hidden, inner, experts, chosen = _sizes(model)
    _check(x, a.optional("gates"), model)
    _check_chosen(a, chosen)
    tokens = x.numel // max(1, size(x, -1))
    ranks = a.setting.ranks
    flops = 2 * _GATED * tokens * chosen * hidden * inner // ranks
    kind = a.setting.weights or model.weights
    used = min(experts, tokens * chosen)
    moved = _weight_bytes(used * _GATED * hidden * inner // ranks, kind, x.dtype)
    params: dict[str, object] = {"T": tokens, "E": experts, "k": chosen, "H": hidden, "I": inner}
    if x.dtype:
        params["type"] = x.dtype
    via = f"widths of --model-config: hidden {hidden}{_padded(x, hidden)}, inside an expert {inner}"
    if ranks > 1:
        via += f", 1/{ranks} of it on this rank, as of the heads"
    why = f"how weights of {kind or 'unknown dtype'} are stored is unknown"
    return Work(
        *(flops, (x, gates), (like(x),), params, moved, why), via=via, stages=(_GATED - 1, 1)
    )


def _padded(x: Tensor, hidden: int) -> str:
    return f" (recorded {x.shape[-1]}: padded)" if x.shape[-1] != hidden else ""


def _sizes(model: ModelConfig) -> tuple[int, int, int, int]:
    dimensions = (model.hidden, model.expert_intermediate, model.experts, model.experts_per_token)
    names = ("hidden_size", "moe_intermediate_size", "num_experts", "num_experts_per_tok")
    missing = [name for name, value in zip(names, dimensions, strict=True) if value is None]
    if missing:
        raise Unknown(f"--model-config does not state {', '.join(missing)}")
    hidden, inner, experts, chosen = (value or 0 for value in dimensions)
    return hidden, inner, experts, chosen


def _check_chosen(a: Args, stated: int) -> None:
    """Raise Unknown where a recorded number of experts a token is another model's."""
    choices = a.optional("choices")
    recorded = size(choices, -1) if choices is not None else a.values.get("chosen")
    if type(recorded) is int and recorded != stated:
        raise Unknown(f"{CONTRADICTS}: {stated} experts per token, recorded {recorded}")


def _check(x: Tensor, gates: Tensor | None, model: ModelConfig) -> None:
    """Raise Unknown where what was recorded cannot be of that model."""
    hidden, experts = model.hidden or 0, model.experts or 0
    if not is_padded(size(x, -1), hidden):
        raise Unknown(f"{CONTRADICTS}: hidden_size {hidden}, recorded activations of {size(x, -1)}")
    if gates is not None and size(gates, -1) not in (experts, hidden, size(x, -1)):
        raise Unknown(f"{CONTRADICTS}: {experts} experts, recorded gates of {size(gates, -1)}")


# --- experts whose weights are given -------------------------------------------------------------


# 2 * 4 * 2 * (10 * 6 + 6 * 5) = 1440; tokens 24 and 24, 8 experts of 90 of 2 bytes, 8 weights and
# 8 numbers of experts of 4
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
    if _of_all_ranks(a) > size(a.tensor("up"), 0):
        return replace(work, flops=None, no_flops=ELSEWHERE, stages=())
    return work


ELSEWHERE = "how many tokens go to this rank's experts is not recorded"


def _of_all_ranks(a: Args) -> int:
    """Give how many experts all ranks have, where vLLM's call says it: its first whole number."""
    if not a.op.endswith("fused_experts"):
        return 0
    return next((value for value in a.listed("rest") if type(value) is int), 0)


# as above: 8 of the 64 sorted places are tokens' choices, 4 bytes each with their weights
@op(
    *("aiter::fmoe", "aiter::fmoe_g1u1", "aiter::fmoe_g1u1_tkw1", "aiter::fmoe_g1u1_a16"),
    *("aiter::fmoe_int8_g1u0", "aiter::fmoe_int8_g1u0_a16", "aiter::fmoe_fp8_blockscale_g1u1"),
    signature=(
        "Tensor out, Tensor input, Tensor up, Tensor down, Tensor sorted, Tensor weights,"
        "Tensor sorted_experts, Tensor valid, int chosen, Value[] rest"
    ),
    example=Example(
        (_X, _X, _UP, _DOWN, _SORTED, _CHOSEN, _SORTED, i32(1), 2),
        flops=1440,
        bytes=1600,
        op="fmoe_g1u1",
    ),
)
def sorted_experts(a: Args) -> Work:
    """The same for tokens that were sorted by their experts."""
    x = a.tensor("input")
    choices = x.numel // max(1, size(x, -1)) * a.integer("chosen", 0)
    if not choices:
        raise Unknown("experts of a token not recorded")
    routes = (fresh((choices,), "int32"), fresh((choices,), "float32"))
    return _experts(a, x, choices, (x, *routes), a.optional("out"))


def _experts(
    a: Args, x: Tensor, choices: int, reads: tuple[Tensor, ...], out: Tensor | None = None
) -> Work:
    """Give the work of so many choices of experts, whose weights are [E, rows, columns]."""
    up, down, hidden = a.tensor("up"), a.tensor("down"), size(x, -1)
    require(has_rank(up, 3) and has_rank(down, 3) and up.shape[0] == down.shape[0])
    experts, rows = up.shape[0], up.shape[1]
    inner = rows if a.op.endswith("g1u0") or "g1u0" in a.op or a.op == "fmoe" else rows // 2
    flops = 2 * choices * hidden * (rows + inner)
    rest = (value for value in a.listed("rest") if isinstance(value, Tensor))
    kept = [up, down, *(t for t in rest if t.shape[:1] == (experts,))]
    used = min(experts, choices)
    weights = tuple(fresh((used, *t.shape[1:]), t.dtype) for t in kept)
    tokens = x.numel // max(1, hidden)
    result = out or (like(x) if not _narrow(x.dtype) else fresh(x.shape, "bfloat16"))
    params: dict[str, object] = {"T": tokens, "E": experts, "k": choices // max(1, tokens)}
    params |= {"H": hidden, "I": inner} | ({"type": x.dtype} if x.dtype else {})
    return Work(flops, reads + weights, (result,), params, stages=(rows, inner))


def _narrow(dtype: str | None) -> bool:
    return dtype is not None and (dtype.startswith("float8") or "int8" in dtype)


# --- one product of each expert ------------------------------------------------------------------


_GIVEN = f8(8, 6)
_MATRICES, _MADE = f8(2, 5, 6), bf16(8, 5)
_SCALES, _MORE = f32(8, 1), f32(2, 5)
_GROUPED = "Tensor input, Tensor matrices, Tensor scale_a, Tensor scale_b"


# 8 rows, each times one of 2 matrices: 2 * 8 * 6 * 5; 48 + 60 of 1 byte, 8 + 10 scales of 4, 40
# written of 2
@op(
    *("_C::cutlass_moe_mm", "_C::cutlass_fp4_group_mm", "sgl_kernel::cutlass_fp4_group_mm"),
    *("sgl_kernel::cutlass_w4a8_moe_mm", "_C::cutlass_blockwise_scaled_grouped_mm"),
    signature=f"Tensor out, {_GROUPED}",
    example=Example((_MADE, _GIVEN, _MATRICES, _SCALES, _MORE), flops=480, bytes=260),
)
@op(
    *("deep_gemm::m_grouped_fp8_gemm_nt_contiguous", "deep_gemm::m_grouped_fp8_gemm_nn_contiguous"),
    signature="Tensor input, Tensor scale_a, Tensor matrices, Tensor scale_b, Tensor out",
    example=Example((_GIVEN, _SCALES, _MATRICES, _MORE, _MADE), flops=480, bytes=260),
)
@op(
    "sgl_kernel::fp8_blockwise_scaled_grouped_mm",
    signature=(
        "Tensor out, any a_ptrs, any b_ptrs, any out_ptrs, any a_scales_ptrs, any b_scales_ptrs,"
        f"{_GROUPED}"
    ),
    example=Example(
        (_MADE, *(_SORTED,) * 5, _GIVEN, _MATRICES, _SCALES, _MORE), flops=480, bytes=260
    ),
)
def grouped(a: Args) -> Work:
    """A product of each row with its expert's matrix, whichever that is."""
    x, w, out = a.tensor("input"), a.tensor("matrices"), a.tensor("out")
    rows, n = size(out, 0), size(out, -1)
    packed = 2 if x.dtype in ("uint8", "float4_e2m1fn_x2") else 1
    k = size(x, -1) * packed
    used = min(size(w, 0), rows)
    weights = tuple(fresh((used, *t.shape[1:]), t.dtype) for t in (w, a.tensor("scale_b")))
    params: dict[str, object] = {"M": rows, "N": n, "K": k, "E": size(w, 0)}
    params |= {"type": x.dtype} if x.dtype else {}
    return Work(2 * rows * n * k, (x, a.tensor("scale_a"), *weights), (out,), params)


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 and 8 experts of 30 of 2 bytes, 8 numbers and weights
# of 4, 40 written of 2
@op(
    "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel",
    signature=(
        "Tensor input, Tensor matrices, Tensor? bias, Tensor out, Tensor? scale_a, Tensor? scale_b,"
        "Tensor? zeros, Tensor weights, Tensor experts"
    ),
    example=Example(
        (_X, bf16(8, 5, 6), None, bf16(8, 5), None, None, None, _CHOSEN, _IDS),
        flops=480,
        bytes=672,
        op="fused_moe_triton_kernels_invoke_fused_moe_kernel_427",
    ),
)
def one_of_two(a: Args) -> Work:
    """One product of the chosen experts, the first or the second, as the matrices' sizes tell."""
    x, w, ids, out = (a.tensor(name) for name in ("input", "matrices", "experts", "out"))
    require(has_rank(w, 3) and size(x, -1) == w.shape[2])  # experts, outputs, inputs
    used = min(w.shape[0], ids.numel)
    kept = (w, *(t for t in a.present("bias", "scale_b", "zeros") if t.shape))
    weights = tuple(fresh((used, *t.shape[1:]), t.dtype) for t in kept)
    scales = tuple(t for t in a.present("scale_a") if t.shape)
    reads = (x, *weights, *scales, a.tensor("weights"), ids)
    return Work(2 * ids.numel * w.shape[1] * w.shape[2], reads, (out,))


# the first products of 4 tokens with 2 experts each: 2 * 8 * 10 * 6; tokens 24, 8 experts of 60 and
# the result's 40 of 2 bytes
@op(
    *("aiter::moe_cktile2stages_gemm1_ck", "aiter::moe_cktile2stages_gemm2_ck"),
    signature=(
        "Tensor input, Tensor matrices, Tensor out, any sorted, any experts, any valid, int chosen,"
        "any pad_n, any pad_k, Tensor? weights, Tensor? scale_a, Tensor? scale_b"
    ),
    example=Example((_X, _UP, bf16(4, 2, 5), _SORTED, _SORTED, _SORTED, 2), flops=960, bytes=1088),
)
def ck_tile_stage(a: Args) -> Work:
    """One of the two products: the second is given a row for each choice."""
    x, w, out = a.tensor("input"), a.tensor("matrices"), a.tensor("out")
    choices = x.numel // max(1, size(x, -1))
    choices *= a.integer("chosen", 0) if "gemm1" in a.op else 1
    packed = 2 if w.dtype in ("uint8", "float4_e2m1fn_x2") else 1
    require(choices and has_rank(w, 3) and w.shape[2] * packed == size(x, -1))
    used = min(w.shape[0], choices)
    kept = (w, *(t for t in a.present("scale_b") if t.shape))
    weights = tuple(fresh((used, *t.shape[1:]), t.dtype) for t in kept)
    scales = tuple(t for t in a.present("scale_a") if t.shape)
    flops = 2 * choices * w.shape[1] * w.shape[2] * packed
    return Work(flops, (x, *weights, *scales), (out,))


_STAGE = (
    "Tensor sorted, Tensor sorted_experts, Tensor valid, Tensor out, int chosen, any kernel,"
    "Tensor? scale_w, Tensor? scale_x"
)
_INNER = bf16(4, 2, 5)


# the first products of 4 tokens with 2 experts each: 2 * 8 * 10 * 6; tokens 24, 8 experts of 60 and
# the result's 40 of 2 bytes
@op(
    "aiter::ck_moe_stage1",
    signature=f"Tensor input, Tensor up, Tensor down, {_STAGE}",
    example=Example((_X, _UP, _DOWN, _SORTED, _SORTED, i32(1), _INNER, 2), flops=960, bytes=1088),
)
# the same in FP8: 24 and 8 experts of 60 of 1 byte, 4 and 8 scales of 4, 40 of 2 bytes
@op(
    "aiter::moe_stage1_g1u1",
    signature=(
        "Tensor input, Tensor up, Tensor down, Tensor sorted, Tensor sorted_experts, Tensor valid,"
        "Tensor out, int width, any kernel, any block, any split, any activation, any quantized,"
        "Tensor? scale_x, Tensor? scale_w"
    ),
    example=Example(
        (
            *(f8(4, 6), f8(8, 10, 6), _DOWN, _SORTED, _SORTED, i32(1), _INNER, 5, "", 32, 0, 0),
            *(2, f32(4, 1), f32(8, 1), None),
        ),
        flops=960,
        bytes=632,
    ),
)
# the second: 2 * 8 * 6 * 5; 40 read, 8 experts of 30, 24 written of 2 bytes
@op(
    "aiter::ck_moe_stage2",
    signature=f"Tensor input, Tensor up, Tensor down, {_STAGE}",
    example=Example((_INNER, _UP, _DOWN, _SORTED, _SORTED, i32(1), _X, 2), flops=480, bytes=608),
)
def stage(a: Args) -> Work:
    """One of the two products of the chosen experts."""
    x, out = a.tensor("input"), a.tensor("out")
    many = out if "stage1" in a.op else x  # [tokens, chosen, inner]
    w = a.tensor("up" if "stage1" in a.op else "down")
    choices = many.numel // max(1, size(many, -1))
    used = min(size(w, 0), choices)
    weights = fresh((used, *w.shape[1:]), w.dtype)
    packed = 2 if w.dtype in ("uint8", "float4_e2m1fn_x2") else 1
    flops = 2 * choices * size(w, 1) * size(w, 2) * packed
    return Work(flops, (x, weights, *a.present("scale_w", "scale_x")), (out,))


_MARLIN = "any sorted, any experts, any padded, Tensor? weights, int block, int chosen,"
_MARLIN_SIZES = "int m, int n, int k"


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 of 2 bytes, 8 experts' packed 60 of 1, scales 40 of 2,
# 40 written of 2
@op(
    *("_moe_C::moe_wna16_marlin_gemm", "sgl_kernel::moe_wna16_marlin_gemm"),
    signature=(
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor? bias, Tensor scale_b,"
            "Tensor? scale_a, Tensor? factor, Tensor? zeros, Tensor? places, Tensor? order,"
            f"Tensor workspace, {_MARLIN} any weighs, int kind, {_MARLIN_SIZES}, any whole,"
            "any atomic, any reduces, any floats, any a, any b, any c"
        ),
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor? bias, Tensor scale_b,"
            "Tensor? factor, Tensor? zeros, Tensor? places, Tensor? order, Tensor workspace,"
            f"{_MARLIN} any weighs, any parallel, int kind, {_MARLIN_SIZES}, any whole, any atomic,"
            "any reduces, any floats"
        ),
        (
            "Tensor input, Tensor? out, Tensor matrices, Tensor scale_b, Tensor? zeros,"
            "Tensor? places, Tensor? order, Tensor workspace,"
            f"{_MARLIN} any weighs, any parallel, int kind, {_MARLIN_SIZES}, any whole, any atomic,"
            "any reduces, any floats"
        ),
    ),
    example=Example(
        (
            *(_X, None, u8(8, 60), bf16(8, 1, 5), None, None, None, _SORTED, _SORTED, _SORTED),
            *(_SORTED, _CHOSEN, 64, 2, True, False, 4, 4, 5, 6, True, False, True, False),
        ),
        flops=480,
        bytes=688,
    ),
)
def marlin_experts(a: Args) -> Work:
    """Packed weights in an order of their own: the call states the sizes."""
    x, w, scale = a.tensor("input"), a.tensor("matrices"), a.tensor("scale_b")
    m, n, k = (a.integer(name, 0) for name in ("m", "n", "k"))
    require(n and k == size(x, -1))
    choices = m * max(1, a.integer("chosen", 1))
    used = min(size(w, 0), choices)
    weights = tuple(fresh((used, *t.shape[1:]), t.dtype) for t in (w, scale))
    out = fresh((choices, n), x.dtype)
    return Work(2 * choices * n * k, (x, *weights), (out,), {"M": choices, "N": n, "K": k})


# --- routing -------------------------------------------------------------------------------------


_SOFTMAX = 24


def _tops(gates: Tensor, writes: Iterable[Tensor], *extra: Tensor) -> Work:
    return Work(_SOFTMAX * gates.numel, (gates, *extra), tuple(writes))


# softmax of 4 * 8, 24 each; 32 read of 2 bytes, 8 weights, 8 numbers and 8 places written of 4
@op(
    *("_moe_C::topk_softmax", "_moe_C::topk_sigmoid", "aiter::topk_softmax"),
    "aiter::topk_softmax_asm",
    "vllm::rocm_aiter_topk_softmax",
    signature="Tensor weights, Tensor experts, Tensor places, Tensor gates",
    example=Example((_CHOSEN, _IDS, _IDS, _GATES), flops=768, bytes=160),
)
@op(
    *("sgl_kernel::topk_softmax", "sgl_kernel::topk_sigmoid", "aiter::topk_sigmoid"),
    signature="Tensor weights, Tensor experts, Tensor gates",
    # no places
    example=Example((_CHOSEN, _IDS, _GATES, True), flops=768, bytes=128),
)
@op(
    *("aiter::biased_grouped_topk", "aiter::biased_grouped_topk_hip", "aiter::moe_fused_gate"),
    "aiter::_moe_fused_gate",
    signature="Tensor gates, Tensor bias, Tensor weights, Tensor experts",
    # a bias of 8 of 2 bytes
    example=Example((_GATES, bf16(8), _CHOSEN, _IDS), flops=768, bytes=144),
)
@op(
    "aiter::grouped_topk",
    signature="Tensor gates, Tensor weights, Tensor experts",
    example=Example((_GATES, _CHOSEN, _IDS), flops=768, bytes=128),
)
def top_experts(a: Args) -> Work:
    """Each token's weights of experts, and the largest of them."""
    writes = a.present("weights", "experts", "places")
    return _tops(a.tensor("gates"), writes, *a.present("bias"))


# as above with 2 chosen
@op(
    "sgl_kernel::moe_fused_gate",
    signature="Tensor gates, Tensor bias, int groups, int top_groups, int chosen",
    example=Example((_GATES, bf16(8), 2, 1, 2), flops=768, bytes=144),
)
def fused_gate(a: Args) -> Work:
    """The same with results of its own."""
    gates = a.tensor("gates")
    shape = (gates.numel // max(1, size(gates, -1)), a.integer("chosen", 1))
    return _tops(gates, (fresh(shape, "float32"), fresh(shape, "int32")), a.tensor("bias"))


# softmax of 4 * 2 chosen, 24 each; 32 read of 2 bytes, 8 weights and 8 numbers written of 2, and a
# bit of each of 4 * 8, in words of 32
@op(
    "TopK",
    signature="Tensor gates, int chosen, bool softmax, int dim, bool bits",
    example=Example((_GATES, 2, True, 1, True, None, None), flops=192, bytes=112, mod=""),
)
def triton_top(a: Args) -> Work:
    """Triton's: the largest, their softmax, and a matrix of bits of who goes where."""
    gates, chosen = a.tensor("gates"), a.integer("chosen", 1)
    require(isinstance(a.values.get("bits"), bool))  # another function of that name
    tokens = gates.numel // max(1, size(gates, -1))
    bits = fresh((tokens, -(-size(gates, -1) // 32)), "int32")
    writes = (fresh((tokens, chosen), gates.dtype), fresh((tokens, chosen), "int16"), bits)
    softmax = _SOFTMAX * tokens * chosen * a.flag("softmax", default=True)
    return Work(softmax, (gates,), writes)


# 8 weights and 8 numbers read of 2 bytes; 8 weights of 2 bytes and two lists of 8 places of 4
# written, and of 8 experts the tokens of each, of 4
@op(
    "SortTokens",
    signature="Tensor weights, Tensor experts, int count",
    example=Example((bf16(4, 2), i16(4, 2), 8), flops=0, bytes=144, mod=""),
)
def triton_sort(a: Args) -> Work:
    """Triton's: choices sorted by expert, where each went and came from, the experts' counts."""
    weights, experts = a.tensor("weights"), a.tensor("experts")
    require(weights.shape == experts.shape)
    places = fresh((2, experts.numel), "int32")
    counts = fresh((a.integer("count", 0),), "int32")
    return Work(0, (weights, experts), (like(weights), places, counts))


# 8 numbers of experts read, 8 places and 8 experts of blocks written at least, of 4 bytes
@op(
    *("_moe_C::moe_align_block_size", "_moe_C::sgl_moe_align_block_size"),
    *("sgl_kernel::moe_align_block_size", "aiter::moe_align_block_size"),
    signature="Tensor experts, int count, int block, Tensor sorted, Tensor blocks",
    example=Example((_IDS, 8, 16, _SORTED, i32(4)), flops=0, bytes=80),
)
def align(a: Args) -> Work:
    """Choices sorted by expert, each expert's padded to whole blocks; padding is not counted."""
    experts, blocks = a.tensor("experts"), a.tensor("blocks")
    return Work(0, (experts,), (like(experts), blocks))


# 8 numbers and weights read, places and weights written, of 4 bytes; a result of 24 zeroed of 2
@op(
    *("aiter::moe_sorting_fwd", "aiter::moe_sorting_opus_fwd"),
    signature=(
        "Tensor experts, Tensor weights, Tensor sorted, Tensor sorted_weights,"
        "Tensor sorted_experts, Tensor valid, Tensor? out"
    ),
    example=Example(
        (_IDS, _CHOSEN, _SORTED, _SORTED, _SORTED, i32(2), _X, 8, 32), flops=0, bytes=176
    ),
)
def sort(a: Args) -> Work:
    """Choices and weights sorted by expert, and the result set to zero."""
    experts, weights = a.tensor("experts"), a.tensor("weights")
    out = a.present("out")
    return Work(0, (experts, weights), (like(experts), like(weights), *out))


# 24 sums of two: 24 additions; 48 read, 24 written of 2 bytes
@op(
    *("_moe_C::moe_sum", "sgl_kernel::moe_sum_reduce", "aiter::moe_sum", "sgl_kernel::moe_sum"),
    signature="Tensor input, Tensor out",
    example=Example((bf16(4, 2, 6), _X), flops=24, bytes=144),
)
def combine(a: Args) -> Work:
    """What a token's experts gave, added up."""
    x, out = a.tensor("input"), a.tensor("out")
    return Work(max(0, x.numel - out.numel), (x,), (out,))


# 8 rows of 6 read and written of 2 bytes, 8 places of 4
@op(
    "sgl_kernel::shuffle_rows",
    signature="Tensor input, Tensor places, Tensor out",
    example=Example((_X, i32(8), bf16(8, 6)), flops=0, bytes=176),
)
@op(
    "sgl_kernel::apply_shuffle_mul_sum",
    signature="Tensor input, Tensor out, Tensor places, Tensor? factors",
    # each of 8 rows weighed and added: 2 * 48; 48 read and 24 written of 2 bytes, 8 places of 4
    example=Example((bf16(8, 6), _X, i32(8), None), flops=96, bytes=176),
)
def shuffle(a: Args) -> Work:
    """Rows by place; those of one token weighed and added, where that is asked."""
    x, places, out = a.tensor("input"), a.tensor("places"), a.tensor("out")
    if a.op == "shuffle_rows":
        return Work(0, (picked(x, out.numel), places), (out,))
    return Work(2 * x.numel, (x, places, *a.present("factors")), (out,))
