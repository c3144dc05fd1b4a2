"""Gated activations of libraries, alone or fused with rounding, and penalties of logits.

A sigmoid costs 20 operations and GELU's error function 24, as in `pointwise`; a gate's product 1,
rounding 5. Bytes: each input read once, each result written once.
"""

from pyprof.ops.examples import Example, b8, bf16, f8, f32, u8
from pyprof.ops.libraries.rounding import group_scales
from pyprof.ops.registry import op
from pyprof.ops.torch.tensors.pointwise_rules import RULES
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "pointwise"

_OUT, _BOTH = bf16(4, 6), bf16(4, 12)
_ROUND = 5


def _gate(name: str) -> int:
    """Return the operations of the activation in an op's name and of its product."""
    activation = "gelu" if "gelu" in name or "geglu" in name else "silu"
    if "relu" in name:
        activation = "relu"
    return RULES[activation].flops + 1


# 24 * (silu 21 + 1); 48 read, 24 written of 2 bytes
@op(
    *("_C::silu_and_mul", "sgl_kernel::silu_and_mul", "aiter::silu_and_mul", "_C::mul_and_silu"),
    *("flashinfer::silu_and_mul", "_C::swigluoai_and_mul", "_C::silu_and_mul_with_clamp"),
    signature="Tensor out, Tensor input",
    example=Example((_OUT, _BOTH), flops=528, bytes=144),
)
@op(
    *("_C::gelu_and_mul", "_C::gelu_tanh_and_mul", "sgl_kernel::gelu_and_mul"),
    *("sgl_kernel::gelu_tanh_and_mul", "aiter::gelu_and_mul", "aiter::gelu_tanh_and_mul"),
    *("flashinfer::gelu_and_mul", "flashinfer::gelu_tanh_and_mul"),
    signature="Tensor out, Tensor input",
    # gelu 24
    example=Example((_OUT, _BOTH), flops=600, bytes=144),
)
@op(
    "_C::fatrelu_and_mul",
    signature="Tensor out, Tensor input",
    # a comparison and a product
    example=Example((_OUT, _BOTH, 0.1), flops=48, bytes=144),
)
@op(
    *("_C::silu_and_mul_quant", "aiter::scaled_silu_and_mul"),
    signature="Tensor out, Tensor input, Tensor scale",
    # rounding 5 more; 24 written of 1 byte, a scale of 4
    example=Example((f8(4, 6), _BOTH, f32(1)), flops=648, bytes=124),
)
@op(
    "_C::silu_and_mul_per_block_quant",
    signature="Tensor out, Tensor input, Tensor scales",
    # 4 scales of 4 written
    example=Example((f8(4, 6), _BOTH, f32(4, 1), 6), flops=648, bytes=136),
)
# rounded to 4 bits: 32 * (22 + 5); 64 read of 2 bytes and a scale of 4, 16 and 2 scales of 1 byte
# written
@op(
    "_C::silu_and_mul_nvfp4_quant",
    signature="Tensor out, Tensor scales, Tensor input, Tensor scale",
    example=Example((u8(1, 16), f8(1, 2), bf16(1, 64), f32(1)), flops=864, bytes=150),
)
def gated(a: Args) -> Work:
    """One half's activation times the other half."""
    x, out = a.tensor("input"), a.tensor("out")
    scale, scales = a.present("scale"), a.present("scales")
    each = _gate(a.op) + _ROUND * bool(scale or scales)
    return Work(each * (x.numel // 2), (x, *scale), (out, *scales))


# 24 * 24; 24 read, 24 written of 2 bytes
@op(
    *("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick", "sgl_kernel::gelu_quick", "_C::gelu_tanh"),
    signature="Tensor out, Tensor input",
    example=Example((_OUT, _OUT), flops=576, bytes=96),
)
def gelu(a: Args) -> Work:
    """An approximation of GELU, counted as GELU."""
    x = a.tensor("input")
    return Work(RULES["gelu"].flops * x.numel, (x,), (a.tensor("out"),))


# 24 * (silu 21 + 1); 24 and 24 read, 24 written of 2 bytes
@op(
    *("LigerSiLUMulFunction", "LigerGELUMulFunction"),
    signature="Tensor first, Tensor second",
    example=Example((_OUT, _OUT), flops=528, bytes=144, mod=""),
)
def gated_apart(a: Args) -> Work:
    """One tensor's activation times another."""
    x, y = a.tensor("first"), a.tensor("second")
    return Work(_gate(a.op.lower()) * x.numel, (x, y), (like(x),))


# 24 * (silu 21 + 1 + 6); 48 of 2 bytes read, 24 of 1 and a scale of 4 for each 3 written
@op(
    "vllm::rocm_aiter_act_mul_and_fp8_group_quant",
    signature="Tensor input, int group",
    example=Example((_BOTH, 3), flops=672, bytes=152),
)
def gated_by_groups(a: Args) -> Work:
    """One half's activation times the other half, each group rounded to FP8 by its own scale."""
    x = a.tensor("input")
    out = fresh((*x.shape[:-1], size(x, -1) // 2), "float8_e4m3fn")
    return Work((_gate("silu") + _ROUND + 1) * out.numel, (x,), (out, group_scales(a, out)))


# 24 logits, each over or times its penalty where it was seen before: 24 * 2; 24 of 4 bytes and two
# masks of 24 of 1 and 4 penalties of 4 read, 24 written
@op(
    "_C::apply_repetition_penalties_",
    signature="Tensor logits, Tensor first_mask, Tensor second_mask, Tensor penalties",
    example=Example((f32(4, 6), b8(4, 6), b8(4, 6), f32(4)), flops=48, bytes=256),
)
def penalties(a: Args) -> Work:
    """Lowers, in place, the logits of tokens that a request already has."""
    x = a.tensor("logits")
    reads = (x, *(a.tensor(name) for name in ("first_mask", "second_mask", "penalties")))
    return Work(2 * x.numel, reads, (like(x),))
