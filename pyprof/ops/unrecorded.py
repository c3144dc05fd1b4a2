"""Ops whose cost cannot be derived from a capture: it depends on data or modules, not on arguments.

Each has its family and the reason, so that none looks forgotten. If ops inside it have a known
cost, their kernels count for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.ops.examples import Example, bf16, i32
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.ops.work import Args, Work

_X, _IDS = bf16(4, 6), i32(4)

_STATES = "sizes of the layer's states are in no argument"
_ROWS = "how long each row is, is not recorded"
_KEYS = "which keys each token sees is not recorded"
_ADAPTERS = "which tokens have an adapter is not recorded"
_FILLED = "how many rows each expert has is not recorded"
_SENT = "how many tokens other ranks send is not recorded"


def _formula(why: str, doc: str) -> Callable[[Args], Work]:
    def formula(_: Args) -> Work:
        raise Unknown(why)

    formula.__doc__ = doc
    return formula


op(
    *("vllm::gdn_attention_core", "vllm::gdn_attention", "vllm::qwen_gdn_attention_core"),
    *("vllm::kda_attention", "vllm::linear_attention", "vllm::short_conv"),
    *("vllm::mamba_mixer", "vllm::mamba_mixer2", "vllm::plamo2_mamba_mixer"),
    *("sglang::unified_linear_attention_with_output", "sglang::nemotron_mamba2_with_output"),
    family="attention",
    signature="Tensor input",
    example=Example((_X, _X, _X, _X, "layers.0")),
    unrecorded=_STATES,
)(_formula(_STATES, "A recurrent layer: weights and states are the module's."))

op(
    *("vllm::sparse_attn_indexer", "vllm::rocm_aiter_sparse_attn_indexer"),
    family="attention",
    signature="Tensor input",
    example=Example((_X, "layers.0", _X)),
    unrecorded=_KEYS,
)(_formula(_KEYS, "The scores by which sparse attention chooses keys, and the choice."))

op(
    *("_C::top_k_per_row_prefill", "_C::top_k_per_row_decode", "_C::persistent_topk"),
    "_C::cooperative_topk",
    family="index",
    signature="Tensor input",
    example=Example((_X, _IDS, _IDS, _IDS, 4, 6, 1, 2)),
    unrecorded=_ROWS,
)(_formula(_ROWS, "The largest of each row, up to where it ends."))

op(
    *("vllm::lora_shrink", "vllm::lora_expand", "vllm::fused_moe_lora"),
    *("vllm::fused_moe_lora_shrink", "vllm::fused_moe_lora_expand", "sglang::fused_moe_lora"),
    *("sglang::fused_moe_lora_shrink", "sglang::fused_moe_lora_expand"),
    family="gemm",
    signature="Tensor input",
    example=Example((_X, (_X,), _X, _IDS)),
    unrecorded=_ADAPTERS,
)(_formula(_ADAPTERS, "Products of the tokens that have an adapter with its narrow matrices."))

op(
    *("_C::persistent_masked_m_silu_mul_quant", "_C::silu_mul_fp8_quant_deep_gemm_cuda"),
    *("sglang::scaled_fp4_grouped_quant", "sglang::silu_and_mul_scaled_fp4_grouped_quant"),
    "sgl_kernel::silu_and_mul_scaled_fp4_experts_quant",
    family="quantization",
    signature="Tensor input",
    example=Example((_X, _IDS, _X, _X)),
    unrecorded=_FILLED,
)(_formula(_FILLED, "Rounding of each expert's first rows, as many as it was given tokens."))

op(
    *("FusedDispatch", "FusedCombine", "HybridEPDispatch", "HybridEPCombine"),
    family="comm",
    signature="Tensor input",
    example=Example((_X, _IDS, _X, 8, False, False), mod=""),
    unrecorded=_SENT,
)(_formula(_SENT, "Megatron's call of DeepEP: tokens to their experts' ranks, and back."))
