"""Formulas of `linear_algebra`, by their worked examples and foreign arguments."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.linear_algebra")


def test_the_factors_of_a_wide_matrix_have_its_shape() -> None:
    """4 x 6 read; P and L of 4 x 4 and U of 4 x 6 written, of 4 bytes."""
    assert ops.cost(Call("torch.linalg", "lu", (f32(4, 6),))).bytes == 4 * (24 + 16 + 16 + 24)
