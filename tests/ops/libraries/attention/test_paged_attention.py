"""Latent attention: compressed keys in decode, whole ones in prefill, the model's widths."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import ops
from pyprof.marker import Call, Tensor
from pyprof.marker.serving_steps import Batch, Phase
from pyprof.ops.examples import bf16
from pyprof.ops.model_config import CONTRADICTS, REMEDY, ModelConfig
from pyprof.ops.work import CallContext
from tests.ops.contract import contract_of
from tests.ops.libraries.attention.test_served_requests import sum_requests

test_formulas_keep_the_contract = contract_of("libraries.attention.paged_attention")


HEADS = 4
LATENT, TURNED, WIDE, VALUE = 32, 8, 24, 16
"""Compressed keys, a head's turned part, its whole width, its values' width."""
MLA_BATCH = Batch(Phase(1, 6, 8, 36, 48), Phase(2, 2, 10, 2, 10))


def _paged_attention(tokens: int) -> Call:
    shapes = ((tokens, HEADS, WIDE), (tokens, LATENT), (tokens, 1, TURNED), (tokens, HEADS * VALUE))
    given = (Tensor(shape, "bfloat16") for shape in shapes)
    return Call("vllm", "unified_mla_attention_with_output", (*given, None, None, None))


@given(
    prefill=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=4),
    decode=st.lists(st.integers(0, 20), max_size=4),
)
def test_paged_attention_decodes_compressed_keys_and_prefills_whole_ones(
    prefill: list[tuple[int, int]], decode: list[int]
) -> None:
    """In prefill each head has its own keys and values; in decode all share compressed ones."""
    batch = Batch(sum_requests(prefill), sum_requests([(1, before) for before in decode]))
    found = ops.cost(_paged_attention(batch.queries), context=CallContext(batch=batch))
    whole = sum(new * (before + new) - new * new / 2 for new, before in prefill)
    shared = sum(before + 1 for before in decode)
    flops = 2 * HEADS * (whole * (WIDE + VALUE) + shared * (2 * LATENT + TURNED))
    keys = sum(new + before for new, before in prefill)
    moved = batch.prefill.queries * HEADS * (WIDE + VALUE) + keys * HEADS * (WIDE + VALUE)
    moved += len(decode) * HEADS * (2 * LATENT + TURNED) + shared * (LATENT + TURNED)
    assert (found.flops, found.bytes) == (flops, 2 * moved)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ModelConfig(latent=LATENT, turned=TURNED), ""),
        (ModelConfig(latent=512), f"{CONTRADICTS}: kv_lora_rank 512, recorded {LATENT}"),
        (ModelConfig(turned=64), f"{CONTRADICTS}: qk_rope_head_dim 64, recorded {TURNED}"),
        (ModelConfig(keys_chosen=9), "of more than 9 keys the model's attention sees 9"),
        (ModelConfig(keys_chosen=2048), ""),
    ],
)
def test_paged_attention_must_fit_the_model(model: ModelConfig, reason: str) -> None:
    found = ops.cost(_paged_attention(8), context=CallContext(model=model, batch=MLA_BATCH))
    assert found.reason == reason


def test_any_attention_may_be_paged_attention() -> None:
    """Flat compressed keys identify latent attention."""
    call, context = _paged_attention(8), CallContext(batch=MLA_BATCH)
    older = replace(call, op="unified_attention_with_output")
    assert ops.cost(older, context=context) == ops.cost(call, context=context)
    flat = replace(older, args=(bf16(8, 1536), *older.args[1:]))
    assert ops.cost(flat, context=context).reason == "heads not recorded"


def test_without_a_result_values_are_as_wide_as_the_model_says() -> None:
    (q, latent, turned, *_) = _paged_attention(8).args
    call = Call("vllm", "unified_mla_attention", (q, latent, turned, None))
    batch = CallContext(batch=MLA_BATCH)
    assert ops.cost(call, context=batch).reason.endswith(REMEDY)
    named = replace(batch, model=ModelConfig(value_head=VALUE))
    assert ops.cost(call, context=named).flops == ops.cost(_paged_attention(8), context=batch).flops
    nameless = replace(batch, model=ModelConfig(hidden=8))
    assert ops.cost(call, context=nameless).reason == "config.json does not state v_head_dim"
