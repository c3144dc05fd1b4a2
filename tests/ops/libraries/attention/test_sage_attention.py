"""The layout argument of SageAttention's ops."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque
from pyprof.ops.examples import f16, f32, i8
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.attention.sage_attention")


@pytest.mark.parametrize(("layout", "heads"), [(0, 8), (1, 4)])
def test_sage_attention_takes_heads_from_its_layout(layout: int, heads: int) -> None:
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
