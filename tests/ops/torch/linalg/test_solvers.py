"""Formulas of `solvers`, by their worked examples and foreign arguments; norms by their order."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.solvers")


@pytest.mark.parametrize("order", ["nuc", 2, -2])
def test_norms_by_singular_values_take_an_unknown_number_of_steps(order: str | int) -> None:
    cost = ops.cost(Call("torch.linalg", "matrix_norm", (f32(6, 3), order)))
    assert (cost.flops, cost.bytes) == (None, 4 * (18 + 1))


@pytest.mark.parametrize("order", [1, -1, float("inf")])
def test_norms_by_sums_have_no_root(order: float) -> None:
    """18 absolute values, 18 additions, one comparison."""
    assert ops.cost(Call("torch.linalg", "matrix_norm", (f32(6, 3), order))).flops == 2 * 18 + 1


def test_the_gradient_of_an_inverse_is_two_products() -> None:
    """-A^-T go A^-T: each of 2 n^3."""
    call = Call("torch.linalg", "inv", (f32(6, 6),))
    assert ops.cost(call, "bprop").flops == 2 * 2 * 6**3


@pytest.mark.parametrize(
    ("arguments", "vectors"), [((), 16 + 36), ((True,), 16 + 36), ((False,), 16 + 24)]
)
def test_singular_vectors_are_square_unless_the_caller_wants_fewer(
    arguments: tuple[bool, ...], vectors: int
) -> None:
    """U is 4 x 4, V 6 x 6 or 4 x 6; the matrix is read, 4 values written, of 4 bytes."""
    call = Call("torch.linalg", "svd", (f32(4, 6), *arguments))
    assert ops.cost(call).bytes == 4 * (24 + vectors + 4)
