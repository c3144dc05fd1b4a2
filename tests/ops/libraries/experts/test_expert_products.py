"""Formulas of `expert_products`, by their worked examples and foreign arguments; their scales."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import bf16, f32, i32
from tests.known import known
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.experts.expert_products")

X, UP, INNER, SORTED, CHOSEN = bf16(4, 6), bf16(8, 10, 6), bf16(4, 2, 10), i32(16), f32(4, 2)


@pytest.mark.parametrize(
    ("mod", "op", "before", "after"),
    [
        ("sglang_profiler", "fused_moe_triton_kernels_invoke_fused_moe_kernel",
         (X, UP, None, bf16(8, 10)), (None, CHOSEN, i32(4, 2))),
        ("aiter", "moe_cktile2stages_gemm1_ck",
         (X, UP, INNER, *(SORTED,) * 3, 2, None, None, None), ()),
    ],
)  # fmt: skip
def test_scales_of_tokens_and_experts_are_read(
    mod: str, op: str, before: tuple[Value, ...], after: tuple[Value, ...]
) -> None:
    """4 and 8 of 4 bytes; single numbers have no size to speak of."""
    without, single, several = (
        ops.cost(Call(mod, op, (*before, *scales, *after))).bytes
        for scales in ((None, None), (f32(), f32()), (f32(4, 1), f32(8, 1)))
    )
    assert (single, several) == (without, known(without) + 4 * (4 + 8))
