"""Attention over caches: lengths come from the step or the model, or are unknown."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import ops
from pyprof.marker import Call, Tensor
from pyprof.marker.serving_steps import Batch, Phase
from pyprof.ops.examples import bf16, i32
from pyprof.ops.model_config import REMEDY, ModelConfig
from pyprof.ops.work import CallContext

HEADS, KEY_HEADS, WIDTH = 4, 2, 16
REQUESTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=4)


def sum_requests(requests: list[tuple[int, int]]) -> Phase:
    """Sum up requests of (new tokens, tokens before them)."""
    pairs = [(new, new + before) for new, before in requests]
    return Phase(
        len(pairs),
        sum(q for q, _ in pairs),
        sum(k for _, k in pairs),
        sum(q * q for q, _ in pairs),
        sum(q * k for q, k in pairs),
    )


def _attention(tokens: int, dtype: str = "bfloat16") -> Call:
    q, k = Tensor((tokens, HEADS, WIDTH), dtype), Tensor((tokens, KEY_HEADS, WIDTH), dtype)
    return Call("vllm", "unified_attention_with_output", (q, k, k, q, None, None, None))


@given(prefill=REQUESTS, decode=st.lists(st.integers(0, 20), max_size=4))
def test_attention_over_a_cache_is_that_of_each_request(
    prefill: list[tuple[int, int]], decode: list[int]
) -> None:
    """Equal to flash attention of one request after the other; a single new token is not halved."""
    batch = Batch(sum_requests(prefill), sum_requests([(1, before) for before in decode]))
    found = ops.cost(_attention(64), context=CallContext(batch=batch))
    flops = moved = 0
    for new, before, causal in (
        *((new, before, True) for new, before in prefill),
        *((1, before, False) for before in decode),
    ):
        q = bf16(1, new, HEADS, WIDTH)
        k = bf16(1, new + before, KEY_HEADS, WIDTH)
        alone = ops.cost(Call("flash_attn", "_flash_attn_forward", (q, k, k, 0.0, 1.0, causal)))
        assert alone.flops is not None
        assert alone.bytes is not None
        flops, moved = flops + alone.flops, moved + alone.bytes
    assert (found.flops, found.bytes, found.reason) == (flops, moved, "")


def test_without_the_steps_range_attention_is_unknown() -> None:
    cost = ops.cost(_attention(8))
    assert (cost.flops, cost.bytes) == (None, None)
    assert cost.reason == "lengths of the requests are in no range around the step"


def test_a_step_of_more_tokens_than_the_op_has_is_another_one() -> None:
    batch = Batch(sum_requests([(9, 0)]), Phase())
    assert ops.cost(_attention(9), context=CallContext(batch=batch)).flops is not None
    assert ops.cost(_attention(8), context=CallContext(batch=batch)).flops is None


def test_a_models_window_leaves_open_which_layers_have_it() -> None:
    """Requests that fit in it cost the same either way; longer ones are unknown."""
    batch = Batch(sum_requests([(9, 3)]), Phase())
    plain = ops.cost(_attention(9), context=CallContext(batch=batch))
    for window, known in ((12, True), (11, False)):
        context = CallContext(ModelConfig(hidden=64, window=window), batch)
        cost = ops.cost(_attention(9), context=context)
        assert (cost.flops == plain.flops) is known
        assert known or "window of 11 keys not stated: give" in cost.reason


def _of_layer(layer: int | None, batch: Batch, tokens: int) -> ops.Cost:
    model = ModelConfig(hidden=64, window=4, windowed=(True, False))
    return ops.cost(_attention(tokens), context=CallContext(model, batch, layer=layer))


def test_a_layer_without_the_window_sees_all_keys() -> None:
    """Lengths within the window are not summed for it; an unknown layer's cost is unknown."""
    batch = Batch(sum_requests([(9, 3), (2, 0)]), Phase())
    plain = ops.cost(_attention(11), context=CallContext(batch=batch))
    full = _of_layer(1, batch, 11)
    assert (full.flops, full.bytes) == (plain.flops, plain.bytes)
    assert "lengths of the requests within a sliding window" in _of_layer(0, batch, 11).reason
    assert "which layers have" in _of_layer(None, batch, 11).reason


@given(st.integers(1, 30), st.integers(4, 30))
def test_a_single_request_within_a_window_is_counted_exactly(queries: int, cached: int) -> None:
    window = 4
    prefill = _of_layer(0, Batch(sum_requests([(queries, cached)]), Phase()), queries)
    q = bf16(1, queries, HEADS, WIDTH)
    k = bf16(1, queries + cached, HEADS, WIDTH)
    flash = (q, k, k, 0.0, 1.0, True, window - 1, 0)
    assert prefill.flops == ops.cost(Call("flash_attn", "_flash_attn_forward", flash)).flops
    decode = _of_layer(0, Batch(Phase(), sum_requests([(1, cached)])), 1)
    assert decode.flops == min(cached + 1, window) * HEADS * 2 * 2 * WIDTH


def test_flat_queries_need_the_models_head_size() -> None:
    """Some versions have [tokens, heads * head]; the reason says to pass --model-config."""
    batch = Batch(sum_requests([(8, 0)]), Phase())
    q, k = bf16(8, HEADS * WIDTH), bf16(8, KEY_HEADS * WIDTH)
    call = Call("vllm", "unified_attention", (q, k, k, None))
    assert ops.cost(call, context=CallContext(batch=batch)).reason.endswith(REMEDY)
    context = CallContext(ModelConfig(head_size=WIDTH), batch)
    plain = ops.cost(_attention(8), context=CallContext(batch=batch))
    assert ops.cost(call, context=context).flops == plain.flops


@pytest.mark.parametrize(
    ("tokens", "requests", "longest", "pages", "page", "known"),
    [
        (48, 3, 16, 16, 1, True),
        (48, 3, 16, 4, 4, True),
        (47, 3, 16, 16, 1, False),  # one is shorter
        (48, 3, 16, 20, 1, False),  # one has cached keys
        (42, 3, 14, 4, 4, False),  # the last page may not be full
        (3, 3, 1, 40, 1, False),  # decode
    ],
)
def test_prefill_of_equal_requests_follows_from_sizes(
    *, tokens: int, requests: int, longest: int, pages: int, page: int, known: bool
) -> None:
    """As many tokens as requests times the longest, and no more keys: SGLang's call of FA3."""
    q = bf16(tokens, HEADS, WIDTH)
    cache = bf16(640, page, KEY_HEADS, WIDTH)
    starts, used = i32(requests + 1), i32(requests)
    table = i32(requests, pages)
    args = (q, cache, cache, *(None,) * 4, starts, None, None, None, used, longest)
    rest = (None, table, *(None,) * 8, 0.25, True, -1, -1, 0.0, False, None, 0, None, 0)
    call = Call("sgl_kernel", "fwd", (*args, *rest))
    found = ops.cost(call)
    flops = requests * HEADS * longest * longest * (2 * WIDTH)
    assert found.flops == (flops if known else None)
    assert bool(found.via) == known
    full = replace(call, args=(*call.args[:24], False, *call.args[25:]))
    assert ops.cost(full).flops is None
