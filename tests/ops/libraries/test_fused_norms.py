"""Norms of libraries."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import bf16, f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.fused_norms")


def test_aiters_group_norm_costs_the_same_with_and_without_out() -> None:
    x, scale, sums = (bf16(2, 4, 3, 3), bf16(4), f32(8))
    given = (x, 2, scale, scale, 1e-5)
    with_result = ops.cost(Call("aiter", "_groupnorm_run", (x, sums, *given)))
    plain = ops.cost(Call("aiter", "_groupnorm_run", given))
    assert (plain.flops, plain.bytes) == (with_result.flops, with_result.bytes) == (576, 304)
