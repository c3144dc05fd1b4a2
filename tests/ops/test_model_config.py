"""Sizes of a model are read from Hugging Face's config.json, whatever a family calls them."""

from __future__ import annotations

import pytest

from pyprof.ops import model_config
from pyprof.ops.model_config import ModelConfig


def test_gpt_oss() -> None:
    """Its experts are as wide as `intermediate_size` says; MXFP4 stands in a part of its own."""
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


def test_other_families_words() -> None:
    """DeepSeek's and Qwen's names; heads tell the head size; a window that is switched off."""
    found = model_config.read(
        {
            "hidden_size": 4096, "moe_intermediate_size": 768, "intermediate_size": 12288,
            "n_routed_experts": 64, "num_experts_per_tok": 8, "num_attention_heads": 32,
            "sliding_window": 4096, "use_sliding_window": False, "torch_dtype": "bfloat16",
        }
    )  # fmt: skip
    assert (found.expert_intermediate, found.experts, found.experts_per_token) == (768, 64, 8)
    assert (found.head_size, found.window, found.weights) == (128, None, "bfloat16")


def test_a_part_for_text_goes_before() -> None:
    """Models for images and text nest it."""
    found = model_config.read({"hidden_size": 1, "text_config": {"hidden_size": 5120}})
    assert found.hidden == 5120


@pytest.mark.parametrize("kind", [{"quant_method": "gptq", "bits": 4}, {"bits": 4}])
def test_integers_of_four_bits(kind: dict[str, object]) -> None:
    """GPTQ and AWQ state bits."""
    found = model_config.read({"hidden_size": 8, "quantization_config": kind})
    assert found.weights == "int4"


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
def test_what_is_no_configuration_says_why(document: dict[str, object], why: str) -> None:
    """The command makes one line of it."""
    with pytest.raises(ValueError, match=why):
        model_config.read(document)
