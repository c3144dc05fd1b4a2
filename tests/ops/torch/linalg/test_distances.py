"""Formulas of `distances`, by their worked examples and foreign arguments; batches."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.distances")


def test_a_batch_of_distances_is_between_rows_of_the_same_matrix() -> None:
    """Each is a difference, a square and a sum of 6 numbers."""
    found = ops.cost(Call("torch", "cdist", (f32(2, 4, 6), f32(2, 5, 6))))
    assert (found.flops, found.bytes) == (2 * 4 * 5 * 3 * 6, 2 * 4 * (24 + 30 + 20))


@pytest.mark.parametrize(
    ("more", "each"),
    [
        ((), 2 * 8),
        ((2.0, "use_mm_for_euclid_dist_if_necessary"), 2 * 8),
        ((1.0,), 3 * 6),
        ((2.0, 2), 3 * 6),
        ((2.0, "donot_use_mm_for_euclid_dist"), 3 * 6),
    ],
)
def test_euclidean_distances_of_more_than_25_rows_are_a_product(
    more: tuple[float | int | str, ...], each: int
) -> None:
    """With two columns more, as torch does it, unless the call's mode says not to."""
    found = ops.cost(Call("torch", "cdist", (f32(26, 6), f32(4, 6), *more)))
    assert found.flops == 26 * 4 * each
    few = ops.cost(Call("torch", "cdist", (f32(25, 6), f32(4, 6), 2.0, 1)))
    assert few.flops == 25 * 4 * 2 * 8
