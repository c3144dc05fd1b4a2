"""Sizes from Hugging Face's config.json, under each family's names."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops import model_config
from pyprof.ops.examples import bf16
from pyprof.ops.model_config import CONTRADICTS, ModelConfig
from pyprof.ops.work import CallContext


def test_gpt_oss() -> None:
    """Its experts have the width `intermediate_size`; MXFP4 is in a section of its own."""
    found = model_config.read(
        {
            "hidden_size": 2880, "intermediate_size": 2880, "num_local_experts": 32,
            "num_experts_per_tok": 4, "num_attention_heads": 64, "num_key_value_heads": 8,
            "head_dim": 64, "num_hidden_layers": 24, "sliding_window": 128, "vocab_size": 201088,
            "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": []},
        }
    )  # fmt: skip
    assert found == ModelConfig(
        *(2880, 2880, 2880, 32, 4, 64, 8, 64, 128, 24, 201088), weights="mxfp4"
    )


def test_names_of_other_families() -> None:
    """DeepSeek's and Qwen's; the head size from the number of heads; a disabled window."""
    found = model_config.read(
        {
            "hidden_size": 4096, "moe_intermediate_size": 768, "intermediate_size": 12288,
            "n_routed_experts": 64, "num_experts_per_tok": 8, "num_attention_heads": 32,
            "sliding_window": 4096, "use_sliding_window": False, "torch_dtype": "bfloat16",
        }
    )  # fmt: skip
    assert (found.expert_intermediate, found.experts, found.experts_per_token) == (768, 64, 8)
    assert (found.head_size, found.window, found.weights) == (128, None, "bfloat16")


_FULL, _SLIDING = "full_attention", "sliding_attention"


@pytest.mark.parametrize(
    ("stated", "windowed"),
    [
        ({}, None),
        ({"layer_types": [_SLIDING, _FULL, _SLIDING]}, (True, False, True)),
        ({"layer_types": [_FULL, "linear_attention", _SLIDING]}, (False, True)),
        ({"layer_types": [_FULL, "chunked_attention", _FULL]}, None),
        ({"layer_types": [_SLIDING, _FULL]}, None),
        ({"layer_types": [[], None, 3]}, None),
        ({"sliding_window_pattern": 3}, (True, True, False)),
        ({"sliding_window_pattern": 0}, None),
        ({"max_window_layers": 2, "use_sliding_window": True}, (False, False, True)),
        ({"max_window_layers": 2}, None),
        ({"layer_types": [_SLIDING] * 3, "use_sliding_window": False}, None),
    ],
)
def test_layers_with_a_window(stated: dict[str, object], windowed: tuple[bool, ...] | None) -> None:
    """By layer types, Gemma's period or Qwen's first layers; unknown if any type is."""
    config = {"hidden_size": 8, "num_hidden_layers": 3, "sliding_window": 128, **stated}
    assert model_config.read(config).windowed == windowed


def test_the_text_section_takes_precedence() -> None:
    """Models for images and text nest it."""
    found = model_config.read({"hidden_size": 1, "text_config": {"hidden_size": 5120}})
    assert found.hidden == 5120


EXPERTS = {
    "DeepSeek V3, Kimi K2": (
        {
            "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
            "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
            "first_k_dense_replace": 3, "num_attention_heads": 128, "num_key_value_heads": 128,
            "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64, "v_head_dim": 128,
        },
        (7168, 2048, 256, 8, 192),
    ),
    "Qwen3-30B-A3B": (
        {
            "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
            "num_experts": 128, "num_experts_per_tok": 8, "head_dim": 128,
            "num_attention_heads": 32,
        },
        (2048, 768, 128, 8, 128),
    ),
    "Mixtral 8x7B": (
        {
            "hidden_size": 4096, "intermediate_size": 14336, "num_local_experts": 8,
            "num_experts_per_tok": 2, "num_attention_heads": 32,
        },
        (4096, 14336, 8, 2, 128),
    ),
    "Llama 4 Scout": (
        {
            "text_config": {
                "hidden_size": 5120, "intermediate_size": 8192, "intermediate_size_mlp": 16384,
                "num_local_experts": 16, "num_experts_per_tok": 1, "head_dim": 128,
                "num_attention_heads": 40,
            },
            "vision_config": {"hidden_size": 1408, "intermediate_size": 5632},
        },
        (5120, 8192, 16, 1, 128),
    ),
    "DBRX": (
        {
            "d_model": 6144, "n_heads": 48,
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
        (6144, 10752, 16, 4, 128),
    ),
    "one number a layer": (
        {
            "hidden_size": 4096, "num_experts": 64, "moe_topk": [8, 8, 8],
            "moe_intermediate_size": [3072, 3072, 3072], "head_dim": 128,
        },
        (4096, 3072, 64, 8, 128),
    ),
    "a part of a part": (
        {"thinker_config": {"text_config": {"hidden_size": 2048, "num_experts": 128,
         "moe_intermediate_size": 768, "num_experts_per_tok": 8, "head_dim": 128}}},
        (2048, 768, 128, 8, 128),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("document", "sizes"), EXPERTS.values(), ids=EXPERTS)
def test_experts_of_published_configurations(
    document: dict[str, object], sizes: tuple[int | None, ...]
) -> None:
    found = model_config.read(document)
    told = (found.hidden, found.expert_intermediate, found.experts, found.experts_per_token)
    assert (*told, found.head_size) == sizes


@pytest.mark.parametrize("document", [part for part, _ in EXPERTS.values()], ids=EXPERTS)
def test_experts_of_every_family_have_a_cost(document: dict[str, object]) -> None:
    """Three matrices per choice; gates for another number of experts are of another model."""
    model = model_config.read(document)
    hidden, inner = model.hidden or 0, model.expert_intermediate or 0
    x, gates = bf16(5, hidden), bf16(5, model.experts or 0)
    found = ops.cost(Call("vllm", "moe_forward", (x, gates)), context=CallContext(model=model))
    assert found.flops == 2 * 3 * 5 * (model.experts_per_token or 0) * hidden * inner
    other = Call("vllm", "moe_forward", (x, bf16(5, 3)))
    reason = ops.cost(other, context=CallContext(model=model)).reason
    assert reason == f"{CONTRADICTS}: {model.experts} experts, recorded gates of 3"


def test_layers_of_different_widths_have_no_width() -> None:
    found = model_config.read({"hidden_size": 8, "intermediate_size": [4, 8]})
    assert found.intermediate is None


def _groups(*weights: dict[str, object]) -> dict[str, object]:
    return {"config_groups": {str(n): {"weights": each} for n, each in enumerate(weights)}}


INT8, INT4 = {"num_bits": 8, "type": "int"}, {"num_bits": 4, "type": "int", "group_size": 32}
PACKED: list[tuple[str, dict[str, object]]] = [
    ("fp8", {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    ("nvfp4", {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    ("mxfp4", {"quant_method": "quark",
               "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}}),
    ("int4", {"quant_method": "compressed-tensors", **_groups(INT4)}),
    ("compressed-tensors", {"quant_method": "compressed-tensors", **_groups(INT8, INT4)}),
    ("int8", _groups(INT8)),
    ("int8", _groups({"dtype": "int8"})),
    ("fp8", _groups({"dtype": "fp8_e4m3"})),
    ("fp8", _groups({"num_bits": 8, "type": "float"})),
    ("nvfp4", _groups({"num_bits": 4, "type": "float", "group_size": 16})),
    ("int4", {"quant_method": "gptq", "bits": 4}),  # as AWQ
    ("int4", {"bits": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "quantization"), PACKED, ids=str)
def test_the_type_of_stored_weights(kind: str, quantization: dict[str, object]) -> None:
    """From a method, an algorithm, or groups of layers; unknown if they differ."""
    document = {"hidden_size": 8, "quantization_config": quantization}
    assert model_config.read(document).weights == kind


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "no size of a model"),
        ({"model_type": "llama"}, "no size of a model"),
        ({"hidden_size": "wide"}, "hidden_size is not a size: 'wide'"),
        ({"hidden_size": 0}, "hidden_size is not a size: 0"),
        ({"hidden_size": True}, "hidden_size is not a size: True"),
        ({"num_experts": -4}, "num_experts is not a size: -4"),
        ({"hidden_size": 10**30}, "hidden_size is not a size"),
    ],
)
def test_an_invalid_configuration_says_why(document: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        model_config.read(document)
