"""Ops whose cost cannot be derived from a capture: it depends on data or modules, not on arguments.

Each has its family and the reason, so that none looks forgotten. If ops inside it have a known
cost, their kernels count for those.
"""

from pyprof.marker import Value
from pyprof.ops.examples import Example, bf16, f32, i32
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work

_X, _IDS = bf16(4, 6), i32(4)


def _register(
    *names: str, family: str, doc: str, why: str, example: tuple[Value, ...], mod: str | None = None
) -> None:
    def formula(_: Args) -> Work:
        raise Unknown(why)

    formula.__doc__ = doc
    call = Example(example, mod=mod)
    op(*names, family=family, signature="Tensor input", example=call, unrecorded=why)(formula)


_register(
    *("vllm::gdn_attention_core", "vllm::gdn_attention", "vllm::qwen_gdn_attention_core"),
    *("vllm::kda_attention", "vllm::linear_attention", "vllm::short_conv"),
    *("vllm::mamba_mixer", "vllm::mamba_mixer2", "vllm::plamo2_mamba_mixer"),
    *("sglang::unified_linear_attention_with_output", "sglang::nemotron_mamba2_with_output"),
    family="attention",
    doc="A recurrent layer: weights and states are the module's.",
    why="sizes of the layer's states are in no argument",
    example=(_X, _X, _X, _X, "layers.0"),
)
_register(
    *("vllm::sparse_attn_indexer", "vllm::rocm_aiter_sparse_attn_indexer"),
    family="attention",
    doc="The scores by which sparse attention chooses keys, and the choice.",
    why="which keys each token sees is not recorded",
    example=(_X, "layers.0", _X),
)
_register(
    *("_C::top_k_per_row_prefill", "_C::top_k_per_row_decode", "_C::persistent_topk"),
    "_C::cooperative_topk",
    family="index",
    doc="The largest of each row, up to where it ends.",
    why="how long each row is, is not recorded",
    example=(_X, _IDS, _IDS, _IDS, 4, 6, 1, 2),
)
_register(
    *("vllm::lora_shrink", "vllm::lora_expand", "vllm::fused_moe_lora"),
    *("vllm::fused_moe_lora_shrink", "vllm::fused_moe_lora_expand", "sglang::fused_moe_lora"),
    *("sglang::fused_moe_lora_shrink", "sglang::fused_moe_lora_expand"),
    family="gemm",
    doc="Products of the tokens that have an adapter with its narrow matrices.",
    why="which tokens have an adapter is not recorded",
    example=(_X, (_X,), _X, _IDS),
)
_register(
    *("_C::persistent_masked_m_silu_mul_quant", "_C::silu_mul_fp8_quant_deep_gemm_cuda"),
    *("sglang::scaled_fp4_grouped_quant", "sglang::silu_and_mul_scaled_fp4_grouped_quant"),
    "sgl_kernel::silu_and_mul_scaled_fp4_experts_quant",
    family="quantization",
    doc="Rounding of each expert's first rows, as many as it was given tokens.",
    why="how many rows each expert has is not recorded",
    example=(_X, _IDS, _X, _X),
)
_register(
    *("FusedDispatch", "FusedCombine", "HybridEPDispatch", "HybridEPCombine"),
    family="comm",
    doc="Megatron's call of DeepEP: tokens to their experts' ranks, and back.",
    why="how many tokens other ranks send is not recorded",
    example=(_X, _IDS, _X, 8, False, False),
    mod="",
)
_register(
    *("quantized::linear", "quantized::linear_relu", "quantized::linear_dynamic"),
    *("quantized::linear_relu_dynamic", "quantized::linear_dynamic_fp16"),
    family="gemm",
    doc="A product of integers on a CPU.",
    why="sizes of packed weights are in no argument",
    example=(_X, "packed"),
)
_register(
    "torchvision::nms",
    family="index",
    doc="Boxes in the order of their scores, without those that overlap one before them.",
    why="which boxes overlap depends on the data",
    example=(f32(6, 4), f32(6), 0.5),
)
