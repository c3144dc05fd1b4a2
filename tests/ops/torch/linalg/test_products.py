"""Formulas of `products`, by their worked examples and foreign arguments; vectors by hand."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.products")


def test_a_chain_may_begin_and_end_with_a_vector() -> None:
    """The 4 by 6 matrix times the last, then the first times that: 48 + 8, not 48 + 12."""
    found = ops.cost(Call("torch.linalg", "multi_dot", ((f32(4), f32(4, 6), f32(6)),)))
    assert (found.flops, found.bytes) == (48 + 8, 4 * (4 + 24 + 6 + 1))
