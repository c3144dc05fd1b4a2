"""The experts' products of vLLM, SGLang, DeepGEMM and Megatron, beside those of `serving_moe`.

2 M N K for M choices of experts; a weight's bytes are those of as many experts as there are choices
at most. Where a rank holds some of the experts, how many of the choices are its own is not
recorded: then the FLOPs are unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.ops.examples import Example, bf16, f8, f32, i32, i64, u8
from pyprof.ops.libraries.serving_moe import ELSEWHERE
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require, size, twice

if TYPE_CHECKING:
    from pyprof.marker import Tensor

FAMILY = "moe"

_X = bf16(4, 6)
_CHOSEN, _IDS, _GATES = (f32(4, 2), i32(4, 2), f32(4, 8))
_GIVEN, _MADE = f8(8, 6), bf16(8, 5)
_MATRICES = f8(2, 5, 6)
_SCALES, _MORE = f32(8, 1), f32(2, 5)
_PACKED = ("uint8", "float4_e2m1fn_x2")


def _used(weights: Tensor, choices: int) -> Tensor:
    """Give what is read of [experts, ..]: of as many experts as there are choices at most."""
    return like(weights, (min(size(weights, 0), choices), *weights.shape[1:]))


# --- one product of each expert ------------------------------------------------------------------


_GROUPED = "Tensor matrices, Tensor scale_a, Tensor scale_b"


# 8 rows, each times one of 2 matrices: 2 * 8 * 6 * 5; 48 + 60 of 1 byte, 8 + 10 scales of 4, 40
# written of 2
@op(
    "_C::cutlass_mxfp8_grouped_mm",
    signature=f"Tensor input, {_GROUPED}, Tensor out",
    example=Example((_GIVEN, _MATRICES, _SCALES, _MORE, _MADE), flops=480, bytes=260),
)
@op(
    *("_C::cutlass_mxfp4_group_mm", "sglang::cutlass_fp4_group_mm"),
    "_C::cutlass_w4a8_moe_mm",
    signature=f"Tensor out, Tensor input, {_GROUPED}",
    example=Example(
        (_MADE, _GIVEN, _MATRICES, _SCALES, _MORE), flops=480, bytes=260, op="cutlass_w4a8_moe_mm"
    ),
)
def grouped(a: Args) -> Work:
    """A product of each row with its expert's matrix, whichever that is."""
    x, w, out = a.tensor("input"), a.tensor("matrices"), a.tensor("out")
    rows, n = size(out, 0), size(out, -1)
    k = size(x, -1) * (2 if x.dtype in _PACKED else 1)
    weights = tuple(_used(t, rows) for t in (w, a.tensor("scale_b")))
    params: dict[str, object] = {"M": rows, "N": n, "K": k, "E": size(w, 0)}
    params |= {"type": x.dtype} if x.dtype else {}
    return Work(2 * rows * n * k, (x, a.tensor("scale_a"), *weights), (out,), params)


# 4 tokens, 2 experts each: 2 * 8 * 5 * 6; 24 of 2 bytes, 8 experts' 15 of 1, their 5 scales of 2,
# 40 written of 2
@op(
    "_moe_C::moe_wna16_gemm",
    signature=(
        "Tensor input, Tensor out, Tensor matrices, Tensor scale_b, Tensor? zeros, Tensor? weights,"
        "Tensor sorted, Tensor experts, Tensor padded, int chosen, int block_m, int block_n,"
        "int block_k, int bits"
    ),
    example=Example(
        (
            *(_X, bf16(4, 2, 5), u8(8, 5, 3), bf16(8, 5, 1), None, None, *(i32(64),) * 3, 2),
            *(16, 32, 64, 4),
        ),
        flops=480,
        bytes=328,
    ),
)
def packed_experts(a: Args) -> Work:
    """One product of the chosen experts, whose weights hold two numbers in a byte, or one."""
    x, w, bits = a.tensor("input"), a.tensor("matrices"), a.integer("bits", 0)
    k = size(x, -1)
    require(bits in (4, 8) and has_rank(w, 3) and w.shape[2] * 8 == k * bits)
    choices = x.numel // max(1, k) * a.integer("chosen", 1)
    kept = tuple(_used(t, choices) for t in (w, *a.present("scale_b", "zeros")))
    out = fresh((choices, w.shape[1]), x.dtype)
    params: dict[str, object] = {"M": choices, "N": w.shape[1], "K": k, "E": w.shape[0]}
    return Work(2 * choices * w.shape[1] * k, (x, *kept), (out,), params)


# 8 rows, each times one of 2 matrices [6, 5]: 2 * 8 * 6 * 5; 48, 60 and 40 of 2 bytes
@op(
    *("GroupedGemm", "grouped_gemm::wrapped_gmm"),
    family="gemm",
    signature=(
        "Tensor input, Tensor matrices, Tensor sizes, bool transposed",
        "Tensor input, Tensor matrices, Tensor sizes, bool first, bool transposed",
    ),
    example=Example((bf16(8, 6), bf16(2, 6, 5), i64(2), False), flops=480, bytes=296, mod=""),
)
def by_sizes(a: Args) -> Work:
    """Rows divided among matrices [experts, K, N], or [experts, N, K] where they are transposed."""
    x, w = a.tensor("input"), a.tensor("matrices")
    transposed = a.flag("transposed", default=False)
    require(not a.flag("first", default=False) and has_rank(x, 2) and has_rank(w, 3))  # rows
    k, n = (w.shape[2], w.shape[1]) if transposed else w.shape[1:]
    require(k == x.shape[1])
    params: dict[str, object] = {"M": x.shape[0], "N": n, "K": k, "E": w.shape[0]}
    params |= {"type": x.dtype} if x.dtype else {}
    return Work(2 * x.shape[0] * n * k, (x, w), (like(x, (x.shape[0], n)),), params)


# twice as many; go 40, 48 and 60 read, 48 and 60 written of 2 bytes
@op("GroupedGemm", direction=BPROP, flops=960, bytes=512)
def by_sizes_backward(a: Args) -> Work:
    """The gradients of the rows and of each expert's matrix."""
    return twice(by_sizes(a))


# --- both products -------------------------------------------------------------------------------


# two products of 4 tokens with 2 experts each, I 16 and H 6: 2 * 8 * (32 * 6 + 16 * 6); 24 and 24
# of 2 bytes, 8 experts' 64 and 12 of 4, their scales 32 and 6 of 2, 8 weights and 8 numbers of 4
_UP, _DOWN = i32(8, 1, 64), i32(8, 1, 12)
_UP_SCALES, _DOWN_SCALES = bf16(8, 1, 32), bf16(8, 1, 6)
_MARLIN_BYTES = 48 * 2 + 8 * (64 + 12) * 4 + 8 * (32 + 6) * 2 + 8 * 4 + 8 * 4


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
        (_X, _UP, _DOWN, _UP_SCALES, _DOWN_SCALES, _GATES, _CHOSEN, _IDS, 8),
        flops=4608,
        bytes=_MARLIN_BYTES,
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
    reads = (x, *(_used(t, choices) for t in kept), a.tensor("weights"), ids)
    params: dict[str, object] = {"T": size(x, 0), "E": size(up, 0), "H": hidden, "I": inner}
    flops = 2 * choices * hidden * (rows + inner)
    return Work(flops, reads, (like(x),), params, stages=(rows, inner))


_TILE = 16

_TRT_UP, _TRT_DOWN = f8(8, 10, 6), f8(8, 6, 5)
_X8 = f8(4, 6)
_SHARES = "int count, int chosen, int groups, int top_groups, int inner, int offset, int held"
_UP_BLOCKS, _DOWN_BLOCKS = f32(8, 1, 1), f32(8, 1, 1)
_BLOCKS = (_TRT_UP, _UP_BLOCKS, _TRT_DOWN, _DOWN_BLOCKS)
_HELD = (8, 2, 1, 1, 5, 0, 8)


# two products of 4 tokens with 2 of 8 experts: 2 * 8 * (10 * 6 + 6 * 5); gates 32 of 4 bytes, 24 of
# 1, weights of 90 of 1 and two scales of 4 of 8 experts, 24 written of 2
@op(
    "vllm::flashinfer_fused_moe_blockscale_fp8",
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor up, Tensor? up_scale, Tensor down,"
        f"Tensor? down_scale, {_SHARES}"
    ),
    example=Example((_GATES, None, _X8, *_BLOCKS, *_HELD), flops=1440, bytes=984),
)
# 4 scales of tokens of 4
@op(
    *("sglang::trtllm_fp8_block_scale_moe_wrapper",),
    "sglang::trtllm_fp8_block_scale_routed_moe_wrapper",
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor? scale_a, Tensor up, Tensor? up_scale,"
        f"Tensor down, Tensor? down_scale, {_SHARES}"
    ),
    example=Example((_GATES, None, _X8, f32(4, 1), *_BLOCKS, *_HELD), flops=1440, bytes=1000),
)
# three scales of 4 of 8 experts, one of all tokens
@op(
    *("vllm::flashinfer_fused_moe_per_tensor_scale_fp8", "vllm::fi_trtllm_fp8_per_tensor_moe"),
    signature=(
        "Tensor gates, Tensor? bias, Tensor input, Tensor? scale_a, Tensor up, Tensor down,"
        f"Tensor? up_scale, Tensor? gate_scale, Tensor? down_scale, {_SHARES}"
    ),
    example=Example(
        (_GATES, None, _X8, f32(1), _TRT_UP, _TRT_DOWN, *(f32(8),) * 3, *_HELD),
        flops=1440,
        bytes=1020,
        op="fi_trtllm_fp8_per_tensor_moe",
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
        (_GATES, None, _X8, _TRT_UP, *(f32(8),) * 2, _TRT_DOWN, f32(8), *_HELD),
        flops=1440,
        bytes=1016,
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
    kept = tuple(_used(t, tokens * chosen) for t in (up, down, *a.present(*scales)))
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
