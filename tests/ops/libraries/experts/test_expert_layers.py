"""Layers of experts: sizes come from arguments or the model, or are unknown."""

from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import bf16, f32, i32
from pyprof.ops.model_config import CONTRADICTS, REMEDY, ModelConfig
from pyprof.ops.work import CallContext
from tests.known import known
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.experts.expert_layers")


MODEL = ModelConfig(hidden=6, expert_intermediate=5, experts=8, experts_per_token=2)


FUSED = (bf16(4, 6), bf16(8, 10, 6), bf16(8, 6, 5), f32(4, 2), i32(4, 2))


def _experts(hidden: int = 6, gates: int = 8, tokens: int = 4) -> Call:
    given = (bf16(tokens, hidden), bf16(tokens, gates))
    return Call("vllm", "moe_forward", (*given, None, None))


def test_experts_without_the_models_sizes_are_unknown() -> None:
    cost = ops.cost(_experts())
    assert (cost.flops, cost.bytes) == (None, None)
    assert cost.reason == f"widths of the experts' weights not recorded: {REMEDY}"
    partial = CallContext(ModelConfig(hidden=6, experts=8))
    assert ops.cost(_experts(), context=partial).reason == (
        "config.json does not state moe_intermediate_size, num_experts_per_tok"
    )


def test_experts_are_products_of_tokens_with_their_choices() -> None:
    """Equal to the plain products of every choice, and to `fused_experts` with weight arguments."""
    cost = ops.cost(_experts(), context=CallContext(MODEL))
    up = ops.cost(Call("torch", "mm", (bf16(8, 6), bf16(6, 10))))
    down = ops.cost(Call("torch", "mm", (bf16(8, 5), bf16(5, 6))))
    assert up.flops is not None
    assert cost.flops == up.flops + known(down.flops)
    assert ops.cost(Call("vllm", "fused_experts", FUSED)).flops == cost.flops
    assert "hidden 6, inside an expert 5" in cost.via
    batch = Call("vllm", "moe_forward", (bf16(1, 4, 6), bf16(1, 4, 8), None, None))
    assert ops.cost(batch, context=CallContext(MODEL)) == cost


@pytest.mark.parametrize(
    ("kind", "stored"),
    [("mxfp4", 720 * 17 // 32 + 1), ("fp8", 720), ("bfloat16", 1440), ("", 1440), ("int4", 360)],
)
def test_weights_are_read_as_they_are_stored(kind: str, stored: int) -> None:
    """90 elements for each of 8 experts: packed with scales, else in the activations' type."""
    found = ops.cost(_experts(), context=CallContext(replace(MODEL, weights=kind)))
    assert found.bytes == 2 * (24 + 24 + 32) + stored
    named = ops.cost(
        _experts(), context=CallContext(replace(MODEL, weights="bfloat16"), weights=kind)
    )
    assert named.bytes == 2 * (24 + 24 + 32) + stored  # the kernel's name goes before


def test_weights_stored_in_an_unknown_way_leave_bytes_unknown() -> None:
    found = ops.cost(_experts(), context=CallContext(replace(MODEL, weights="quark")))
    assert (found.flops, found.bytes, "quark" in found.reason) == (1440, None, True)


def test_few_tokens_read_few_experts() -> None:
    found = ops.cost(_experts(tokens=1), context=CallContext(MODEL))
    assert found.bytes == 2 * (6 + 6 + 8 + 2 * 90)


def test_padded_widths_are_not_another_model() -> None:
    """2880 is padded to 3072; 4096, or fewer than stated, contradicts the model."""
    model = ModelConfig(hidden=2880, expert_intermediate=2880, experts=8, experts_per_token=2)
    plain, padded = (
        ops.cost(_experts(hidden), context=CallContext(model)) for hidden in (2880, 3072)
    )
    assert plain.flops == padded.flops is not None
    assert "(recorded 3072: padded)" in padded.via
    for call in (_experts(4096), _experts(2048), _experts(2880, gates=64)):
        cost = ops.cost(call, context=CallContext(model))
        assert (cost.flops, cost.reason.startswith(CONTRADICTS)) == (None, True)


def test_another_number_of_experts_per_token_is_another_model() -> None:
    x, ids = bf16(4, 6), i32(4, 3)
    call = Call("vllm", "transformers_moe_forward", (x, ids, ids, None))
    found = ops.cost(call, context=CallContext(model=MODEL))
    assert found.reason == f"{CONTRADICTS}: 2 experts per token, recorded 3"


@pytest.mark.parametrize(("count", "flops"), [(-1, 1440), (8, 1440), (32, None)])
def test_tokens_of_some_of_the_experts_are_unknown(count: int, flops: int | None) -> None:
    """With experts on several ranks, how many tokens each gets is not recorded."""
    args = (*FUSED, "silu", False, True, False, count)
    experts = ops.cost(Call("vllm", "fused_experts", args))
    assert experts.flops == flops
    assert ("this rank's experts" in experts.reason) == (flops is None)
