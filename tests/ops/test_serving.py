"""Ops of serving libraries: what no argument tells comes from the step or the model, or not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import ops
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.marker.batch import Batch, Phase
from pyprof.ops.examples import bf16, f8, f16, f32, i8, i32, i64, u8
from pyprof.ops.model_config import CONTRADICTS, REMEDY, ModelConfig
from pyprof.ops.work import CallContext

HEADS, KEY_HEADS, WIDTH = 4, 2, 16
MODEL = ModelConfig(hidden=6, expert_intermediate=5, experts=8, experts_per_token=2)
REQUESTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=4)


def _phase(requests: list[tuple[int, int]]) -> Phase:
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
    """As flash attention of one request after the other costs; of one new token no half is cut."""
    batch = Batch(_phase(prefill), _phase([(1, before) for before in decode]))
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
    """The reason says where the lengths should have been."""
    cost = ops.cost(_attention(8))
    assert (cost.flops, cost.bytes) == (None, None)
    assert cost.reason == "lengths of the requests are in no range around the step"


def test_a_step_of_more_tokens_than_the_op_has_is_another_one() -> None:
    """Then nothing is known."""
    batch = Batch(_phase([(9, 0)]), Phase())
    assert ops.cost(_attention(9), context=CallContext(batch=batch)).flops is not None
    assert ops.cost(_attention(8), context=CallContext(batch=batch)).flops is None


def test_a_models_window_leaves_open_which_layers_have_it() -> None:
    """Requests that fit in it cost the same with and without; longer ones are unknown."""
    batch = Batch(_phase([(9, 3)]), Phase())
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
    """The other one's lengths within the window are in no sum; nor is an unknown layer's cost."""
    batch = Batch(_phase([(9, 3), (2, 0)]), Phase())
    plain = ops.cost(_attention(11), context=CallContext(batch=batch))
    full = _of_layer(1, batch, 11)
    assert (full.flops, full.bytes) == (plain.flops, plain.bytes)
    assert "lengths of the requests within a sliding window" in _of_layer(0, batch, 11).reason
    assert "which layers have" in _of_layer(None, batch, 11).reason


@given(st.integers(1, 30), st.integers(4, 30))
def test_a_single_request_within_a_window_is_counted_exactly(queries: int, cached: int) -> None:
    """As flash attention with that window counts it; a decoded token sees the window's keys."""
    window = 4
    prefill = _of_layer(0, Batch(_phase([(queries, cached)]), Phase()), queries)
    q = bf16(1, queries, HEADS, WIDTH)
    k = bf16(1, queries + cached, HEADS, WIDTH)
    flash = (q, k, k, 0.0, 1.0, True, window - 1, 0)
    assert prefill.flops == ops.cost(Call("flash_attn", "_flash_attn_forward", flash)).flops
    decode = _of_layer(0, Batch(Phase(), _phase([(1, cached)])), 1)
    assert decode.flops == min(cached + 1, window) * HEADS * 2 * 2 * WIDTH


def test_flat_queries_need_the_models_head_size() -> None:
    """Some versions give [tokens, heads * head]; the reason says what to give."""
    batch = Batch(_phase([(8, 0)]), Phase())
    q, k = bf16(8, HEADS * WIDTH), bf16(8, KEY_HEADS * WIDTH)
    call = Call("vllm", "unified_attention", (q, k, k, None))
    assert ops.cost(call, context=CallContext(batch=batch)).reason.endswith(REMEDY)
    context = CallContext(ModelConfig(head_size=WIDTH), batch)
    assert (
        ops.cost(call, context=context).flops
        == ops.cost(_attention(8), context=CallContext(batch=batch)).flops
    )


def _experts(hidden: int = 6, gates: int = 8, tokens: int = 4) -> Call:
    given = (bf16(tokens, hidden), bf16(tokens, gates))
    return Call("vllm", "moe_forward", (*given, None, None))


def test_experts_without_the_models_sizes_are_unknown() -> None:
    cost = ops.cost(_experts())
    assert (cost.flops, cost.bytes) == (None, None)
    assert cost.reason == f"widths of the experts' weights not recorded: {REMEDY}"
    partial = CallContext(ModelConfig(hidden=6, experts=8))
    assert ops.cost(_experts(), context=partial).reason == (
        "--model-config does not state moe_intermediate_size, num_experts_per_tok"
    )


def test_experts_are_products_of_each_token_with_some() -> None:
    """As the plain products of every choice, and as `fused_experts` with weights as arguments."""
    cost = ops.cost(_experts(), context=CallContext(MODEL))
    up = ops.cost(Call("torch", "mm", (bf16(8, 6), bf16(6, 10))))
    down = ops.cost(Call("torch", "mm", (bf16(8, 5), bf16(5, 6))))
    assert up.flops is not None
    assert down.flops is not None
    assert cost.flops == up.flops + down.flops
    ids = i32(4, 2)
    fused = Call(
        "vllm", "fused_experts", (*(bf16(4, 6), bf16(8, 10, 6)), *(bf16(8, 6, 5), f32(4, 2), ids))
    )
    assert ops.cost(fused).flops == cost.flops
    assert "hidden 6, inside an expert 5" in cost.via


@pytest.mark.parametrize(
    ("kind", "stored"),
    [("mxfp4", 720 * 17 // 32 + 1), ("fp8", 720), ("bfloat16", 1440), ("", 1440), ("int4", 360)],
)
def test_weights_are_read_as_they_are_stored(kind: str, stored: int) -> None:
    """Of 8 experts 90 numbers each: packed with their scales, else of the activations' type."""
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
    """One token through two experts needs the weights of two."""
    found = ops.cost(_experts(tokens=1), context=CallContext(MODEL))
    assert found.bytes == 2 * (6 + 6 + 8 + 2 * 90)


def test_padded_widths_are_not_another_model() -> None:
    """2880 is padded to 3072; 4096, or fewer than stated, contradict the capture."""
    model = ModelConfig(hidden=2880, expert_intermediate=2880, experts=8, experts_per_token=2)
    plain, padded = (
        ops.cost(_experts(hidden), context=CallContext(model)) for hidden in (2880, 3072)
    )
    assert plain.flops == padded.flops is not None
    assert "(recorded 3072: padded)" in padded.via
    for call in (_experts(4096), _experts(2048), _experts(2880, gates=64)):
        cost = ops.cost(call, context=CallContext(model))
        assert (cost.flops, cost.reason.startswith(CONTRADICTS)) == (None, True)


def test_libraries_ops_are_not_torchs_of_the_same_name() -> None:
    """The result of vLLM's `_C::rms_norm` comes first; other ops of `_C` are unknown."""
    out, x = f8(4, 6), bf16(4, 6)
    w = bf16(6)
    assert ops.cost(Call("_C", "rms_norm", (out, x, w, 1e-6))).bytes == 24 + 48 + 12
    assert ops.find(Call("_C", "relu", (x,))) is None
    assert ops.find(Call("torch._C._nn", "relu", (x,))) is not None


def test_names_that_are_numbered_anew_in_each_process_are_known() -> None:
    """SGLang's profiler puts a counter behind the names of what it wraps."""
    for number in ("", "_100", "_7"):
        assert ops.find(Call("sglang_profiler", f"attention_paged_attention_ragged{number}"))


def test_packed_types_count_for_what_they_hold() -> None:
    """An FP4 product has twice the depth that its bytes seem to have, and reads the bytes."""
    out = bf16(4, 5)
    x, w = u8(4, 32), u8(5, 32)
    scales = (f8(4, 4), f8(5, 4))
    cost = ops.cost(Call("_C", "cutlass_scaled_fp4_mm", (out, x, w, *scales, f32(1))))
    assert cost.flops == 2 * 4 * 5 * 64
    assert cost.bytes == 4 * 32 + 5 * 32 + 16 + 20 + 4 + 40


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("TopK", (f32(4, 8), 2)),  # a user's function of that name
        ("SortTokens", (f32(4, 8), i64(4), 2)),
        ("_Linear", (f32(4, 8), f32(5, 7))),
        ("RMSNormFunction", (f32(4, 8), f32(4))),
        ("CrossEntropyFunction", (f32(4, 8), i64(8))),
        ("SwiGLUFunction", (f32(4, 8), f32(8, 8))),
        ("FlashAttnFunc", (f32(4, 8),) * 3),
    ],
)
def test_functions_of_the_same_name_with_other_arguments_are_unknown(
    op: str, args: tuple[Tensor | int, ...]
) -> None:
    """Names of autograd functions have no namespace; what does not fit is not costed."""
    found = ops.cost(Call("", op, args))
    assert (found.flops, bool(found.reason)) == (None, True)


def test_as_many_experts_a_token_as_the_model_says() -> None:
    """Where the choices are recorded, another number is another model's."""
    x, ids = bf16(4, 6), i32(4, 3)
    call = Call("vllm", "transformers_moe_forward", (x, ids, ids, None))
    found = ops.cost(call, context=CallContext(model=MODEL))
    assert found.reason == f"{CONTRADICTS}: 2 experts per token, recorded 3"


@pytest.mark.parametrize(("count", "flops"), [(-1, 1440), (8, 1440), (32, None)])
def test_experts_of_other_ranks_take_tokens_away(count: int, flops: int | None) -> None:
    """Where the weights are of some of the experts, how many tokens they get is not recorded."""
    experts = ops.cost(
        Call(
            "vllm",
            "fused_experts",
            (
                *(bf16(4, 6), bf16(8, 10, 6)),
                *(bf16(8, 6, 5), f32(4, 2)),
                *(i32(4, 2), "silu", False, True, False, count),
            ),
        )
    )
    assert experts.flops == flops
    assert ("this rank's experts" in experts.reason) == (flops is None)


LATENT, TURNED, WIDE, VALUE = 32, 8, 24, 16
"""Compressed keys, a head's turned part, its whole width, its values' width."""


def _latent_attention(tokens: int) -> Call:
    shapes = ((tokens, HEADS, WIDE), (tokens, LATENT), (tokens, 1, TURNED), (tokens, HEADS * VALUE))
    given = (Tensor(shape, "bfloat16") for shape in shapes)
    return Call("vllm", "unified_mla_attention_with_output", (*given, None, None, None))


@given(
    prefill=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=4),
    decode=st.lists(st.integers(0, 20), max_size=4),
)
def test_latent_attention_decodes_compressed_keys_and_prefills_whole_ones(
    prefill: list[tuple[int, int]], decode: list[int]
) -> None:
    """In prefill each head has keys and values of its own; in decode all share compressed ones."""
    batch = Batch(_phase(prefill), _phase([(1, before) for before in decode]))
    found = ops.cost(_latent_attention(batch.queries), context=CallContext(batch=batch))
    whole = sum(new * (before + new) - new * new / 2 for new, before in prefill)
    shared = sum(before + 1 for before in decode)
    flops = 2 * HEADS * (whole * (WIDE + VALUE) + shared * (2 * LATENT + TURNED))
    keys = sum(new + before for new, before in prefill)
    moved = batch.prefill.queries * HEADS * (WIDE + VALUE) + keys * HEADS * (WIDE + VALUE)
    moved += len(decode) * HEADS * (2 * LATENT + TURNED) + shared * (LATENT + TURNED)
    assert (found.flops, found.bytes) == (flops, 2 * moved)


MLA_BATCH = Batch(Phase(1, 6, 8, 36, 48), Phase(2, 2, 10, 2, 10))


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
def test_latent_attention_is_that_of_the_model(model: ModelConfig, reason: str) -> None:
    """Widths that are another model's are named; attention that leaves out keys is unknown."""
    found = ops.cost(_latent_attention(8), context=CallContext(model=model, batch=MLA_BATCH))
    assert found.reason == reason


def test_latent_attention_was_the_op_of_any_attention() -> None:
    """Flat compressed keys give it away."""
    call, context = _latent_attention(8), CallContext(batch=MLA_BATCH)
    older = replace(call, op="unified_attention_with_output")
    assert ops.cost(older, context=context) == ops.cost(call, context=context)
    flat = replace(older, args=(bf16(8, 1536), *older.args[1:]))
    assert ops.cost(flat, context=context).reason == "heads not recorded"


def test_without_a_result_values_are_as_wide_as_the_model_says() -> None:
    (q, latent, turned, *_) = _latent_attention(8).args
    call = Call("vllm", "unified_mla_attention", (q, latent, turned, None))
    batch = CallContext(batch=MLA_BATCH)
    assert ops.cost(call, context=batch).reason.endswith(REMEDY)
    named = replace(batch, model=ModelConfig(value_head=VALUE))
    assert (
        ops.cost(call, context=named).flops == ops.cost(_latent_attention(8), context=batch).flops
    )
    nameless = replace(batch, model=ModelConfig(hidden=8))
    assert ops.cost(call, context=nameless).reason == "--model-config does not state v_head_dim"


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
def test_prefill_of_equal_requests_is_told_by_sizes(
    *, tokens: int, requests: int, longest: int, pages: int, page: int, known: bool
) -> None:
    """As many tokens as requests of the longest, and no more keys: SGLang's call of FA3."""
    q = bf16(tokens, HEADS, WIDTH)
    cache = bf16(640, page, KEY_HEADS, WIDTH)
    starts, used = i32(requests + 1), i32(requests)
    table = i32(requests, pages)
    call = Call(
        "sgl_kernel",
        "fwd",
        (
            *(q, cache, cache, None, None, None, None, starts, None, None, None, used, longest),
            *(None, table, *(None,) * 8, 0.25, True, -1, -1, 0.0, False, None, 0, None, 0),
        ),
    )
    found = ops.cost(call)
    flops = requests * HEADS * longest * longest * (2 * WIDTH)
    assert found.flops == (flops if known else None)
    assert bool(found.via) == known
    full = replace(call, args=(*call.args[:24], False, *call.args[25:]))
    assert ops.cost(full).flops is None


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        ((8, 8, 0.0, 0.25, True), True),  # FlashAttention 2
        ((None, None, 8, 8, 0.25, True), True),  # 3
        ((None, i32(2), 8, 8, 0.25, True), False),  # parts of the sequences
        ((8, 9, 0.0, 0.25, True), False),
    ],
)
def test_packed_sequences_in_both_orders_of_arguments(
    rest: tuple[Value, ...], *, known: bool
) -> None:
    """Both call it `FlashAttnVarlenFunc`; the longest sequences are the first whole numbers."""
    packed, starts = bf16(16, HEADS, WIDTH), i32(3)
    call = Call("", "FlashAttnVarlenFunc", (packed, packed, packed, starts, starts, *rest))
    assert ops.cost(call).flops == (2 * HEADS * 8 * 8 * 2 * WIDTH if known else None)


def test_aiter_is_given_the_result_of_a_group_norm_or_not() -> None:
    """Both are the same work."""
    x, scale, sums = (bf16(2, 4, 3, 3), bf16(4), f32(8))
    given = (x, 2, scale, scale, 1e-5)
    with_result = ops.cost(Call("aiter", "_groupnorm_run", (x, sums, *given)))
    plain = ops.cost(Call("aiter", "_groupnorm_run", given))
    assert (plain.flops, plain.bytes) == (with_result.flops, with_result.bytes) == (576, 304)


@pytest.mark.parametrize(("layout", "heads"), [(0, 8), (1, 4)])
def test_sage_attention_says_where_its_heads_are(layout: int, heads: int) -> None:
    """[batch, tokens, heads, head] or heads before tokens: without the layout FLOPs are unknown."""
    q, half = i8(2, 4, 8, 16), f16(2, 4, 8, 16)
    scale = f32(2, 4, 1)
    given = (q, q, half, half, scale, scale)
    tokens = 32 // heads
    for causal, whole in ((0, 1), (1, 2)):
        call = Call("sageattention", "qk_int8_sv_f16_accum_f32_attn", (*given, layout, causal))
        scores = 2 * heads * tokens * tokens
        assert ops.cost(call).flops == scores * 2 * (16 + 16) // whole
    hidden = Call("sageattention", "qk_int8_sv_f16_accum_f32_attn", (*given, Opaque()))
    cost = ops.cost(hidden)
    assert (cost.flops, cost.bytes, cost.reason) == (None, 6208, "tensor_layout not recorded")
