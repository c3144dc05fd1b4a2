"""Formulas of `distances`, by their worked examples and foreign arguments; batches."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.distances")


def test_a_batch_of_distances_is_between_rows_of_the_same_matrix() -> None:
    """Each is a difference, a square and a sum of 6 numbers."""
    found = ops.cost(Call("torch", "cdist", (f32(2, 4, 6), f32(2, 5, 6))))
    assert (found.flops, found.bytes) == (2 * 4 * 5 * 3 * 6, 2 * 4 * (24 + 30 + 20))
