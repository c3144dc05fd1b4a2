"""The sizes of a model that no trace holds, as Hugging Face's config.json states them.

The weights of `vllm::moe_forward` are not among its arguments: their width, their bits and the
number of experts per token are in the model's configuration.
"""

from __future__ import annotations

import re
import reprlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

REMEDY = "give --with config.json"
"""What to do if a cost is unknown because such a size is."""

LAYER_TYPES = "give --with a config.json with layer_types"
"""What to do if the model has a window and it is unknown in which layers."""

CONTRADICTS = "config.json contradicts the capture"
"""How the reason of a cost begins if a recorded shape cannot be that model's."""

_SPELLINGS = {
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "intermediate": ("intermediate_size", "ffn_hidden_size", "n_inner"),
    "expert_intermediate": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": (
        *("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k"),
        "experts_per_token",
    ),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "key_heads": ("num_key_value_heads",),
    "head_size": ("head_dim",),
    "window": ("sliding_window",),
    "layers": ("num_hidden_layers", "n_layer"),
    "vocabulary": ("vocab_size",),
    "latent": ("kv_lora_rank",),
    "turned": ("qk_rope_head_dim",),
    "unturned": ("qk_nope_head_dim",),
    "value_head": ("v_head_dim",),
    "keys_chosen": ("index_topk",),
}
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_PADDING = 512
"""Kernels for packed weights pad widths to a multiple of this, or of less."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Sizes of a model; None if absent from config.json."""

    hidden: int | None = None
    intermediate: int | None = None
    """Width inside a dense feed-forward layer."""
    expert_intermediate: int | None = None
    """Width inside an expert."""
    experts: int | None = None
    experts_per_token: int | None = None
    heads: int | None = None
    key_heads: int | None = None
    head_size: int | None = None
    window: int | None = None
    """How many keys a query of `windowed` layers sees; None if queries of all layers see all."""
    layers: int | None = None
    vocabulary: int | None = None
    latent: int | None = None
    """Width of the compressed keys and values that all heads share."""
    turned: int | None = None
    """Width of a head's part that is turned by its position, if it is stored apart."""
    unturned: int | None = None
    value_head: int | None = None
    """Width of a head's values, if it differs from its keys'."""
    keys_chosen: int | None = None
    """How many keys a query of sparse attention sees; None if it sees all."""
    windowed: tuple[bool, ...] | None = None
    """Per layer with attention: whether its queries see only the window. None if not stated."""
    weights: str = ""
    """How weights are stored: `mxfp4`, `fp8`, `int4`; a dtype if they are not packed."""


def read(document: object) -> ModelConfig:
    """Read a parsed config.json. Raises ValueError if a size is invalid, or none is stated.

    For a model of images and text, the text model is read.
    """
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - it comes from a file
    config = _text_part(document)
    sizes = {name: _size(config, keys) for name, keys in _SPELLINGS.items()}
    if not any(sizes.values()):
        raise ValueError("it has no size of a model, such as hidden_size")
    if config.get("use_sliding_window") is False:
        sizes["window"] = None
    sizes["expert_intermediate"] = sizes["expert_intermediate"] or sizes["intermediate"]
    if sizes["unturned"] and sizes["turned"]:
        sizes["head_size"] = sizes["unturned"] + sizes["turned"]
    elif sizes["head_size"] is None and sizes["heads"] and sizes["hidden"]:
        sizes["head_size"] = sizes["hidden"] // sizes["heads"] or None
    windowed = _windowed(config, sizes["layers"]) if sizes["window"] else None
    return ModelConfig(**sizes, windowed=windowed, weights=_weights(config))


def _windowed(config: Mapping[str, object], layers: int | None) -> tuple[bool, ...] | None:
    """Return for each layer with attention whether it has the window; None if not stated.

    By its type, else by Gemma's period (the last layer of each period sees all) or Qwen's first
    layer with a window.
    """
    types = config.get("layer_types")
    if isinstance(types, list) and len(types) == (layers or len(types)):
        attention = [kind for kind in types if kind not in _NO_ATTENTION]
        windowed = [_ATTENTION.get(str(kind)) for kind in attention]
        known = tuple(each for each in windowed if each is not None)
        return known if known and len(known) == len(windowed) else None
    period, first = config.get("sliding_window_pattern"), config.get("max_window_layers")
    if layers is None or layers > _MAX_LAYERS or types is not None:
        return None
    if type(period) is int and period > 0:
        return tuple((layer + 1) % period != 0 for layer in range(layers))
    if type(first) is int and config.get("use_sliding_window") is True:
        return tuple(layer >= first for layer in range(layers))
    return None


_ATTENTION = {"sliding_attention": True, "full_attention": False}
_NO_ATTENTION = ("linear_attention", "mamba", "conv")
_MAX_LAYERS = 1 << 12


def _text_part(document: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings of the text model, which may be nested, before the others."""
    nested = (document.get(name) for name in _NESTED)
    part = next((part for part in nested if isinstance(part, dict)), None)
    if part is None:
        # DBRX has a part of its own for the experts' sizes
        experts = document.get("ffn_config")
        return {**experts, **document} if isinstance(experts, dict) else document
    return {**document, **_text_part(part)}


def _size(config: Mapping[str, object], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = config.get(key)
        if isinstance(value, list):  # one for each layer: of use if all are equal
            value = value[0] if value and all(item == value[0] for item in value) else None
        if value is None:
            continue
        if type(value) is not int or not 0 < value < 1 << 40:
            raise ValueError(f"{key} is not a size: {reprlib.repr(value)}")
        return value
    return None


def _weights(config: Mapping[str, object]) -> str:
    quantization = config.get("quantization_config", config.get("quantization"))
    if isinstance(quantization, dict):
        if kind := _kind_of_groups(quantization):
            return kind
        method = str(quantization.get("quant_algo") or quantization.get("quant_method", ""))
        bits = quantization.get("bits", quantization.get("weight_bits"))
        return f"int{bits}" if bits in (4, 8) and "fp" not in method.lower() else method.lower()
    if isinstance(quantization, str):
        return quantization.lower()
    return str(config.get("torch_dtype") or config.get("dtype") or "")


def _kind_of_groups(quantization: Mapping[str, object]) -> str:
    """Return the type of weights stated for groups of layers; "" for none or several.

    compressed-tensors' and ModelOpt's `config_groups`, Quark's `global_quant_config`.
    """
    groups = quantization.get("config_groups")
    listed = groups.values() if isinstance(groups, dict) else ()
    stated = [group.get("weights") for group in listed if isinstance(group, dict)]
    overall = quantization.get("global_quant_config")
    stated += [overall.get("weight")] if isinstance(overall, dict) else []
    kinds = {_kind(weights) for weights in stated if isinstance(weights, dict)}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind(weights: Mapping[str, object]) -> str:
    bits, group = weights.get("num_bits"), weights.get("group_size")
    kind = str(weights.get("type", ""))
    if match := _DTYPE.match(str(weights.get("dtype", ""))):
        kind, bits = match[1], int(match[2])
    if bits not in (4, 8):
        return ""
    if not kind.startswith("f"):
        return f"int{bits}" if kind == "int" else ""
    if bits == 4:  # noqa: PLR2004 - bits
        return {16: "nvfp4", 32: "mxfp4"}.get(group if type(group) is int else 0, "")
    return "mxfp8" if group == _MX_GROUP else "fp8"


_DTYPE = re.compile(r"(fp|int)([48])")
_MX_GROUP = 32
"""Numbers that share a scale in the MX formats."""


def is_padded(recorded: int, stated: int) -> bool:
    """Whether a recorded width can be the stated one, padded or not."""
    return stated <= recorded <= -(-stated // _PADDING) * _PADDING


NAMES = tuple(field.name for field in fields(ModelConfig))
