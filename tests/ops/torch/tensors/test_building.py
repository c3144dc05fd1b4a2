"""Formulas of `building`, by their worked examples and foreign arguments."""

from itertools import combinations, combinations_with_replacement

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.building")


def test_a_block_of_a_number_or_a_row_has_one_row() -> None:
    """As in torch, 1 + 1 + 2 rows of 1 + 3 + 5 columns."""
    blocks = (f32(), f32(3), f32(2, 5))
    assert ops.cost(Call("torch", "block_diag", blocks)).bytes == 4 * (1 + 3 + 10 + 4 * 9)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("chosen", [0, 1, 3])
def test_each_choice_of_elements_is_written(chosen: int, *, again: bool) -> None:
    choices = (combinations_with_replacement if again else combinations)(range(4), chosen)
    found = ops.cost(Call("torch", "combinations", (f32(4), chosen, again)))
    assert found.bytes == 4 * (4 + sum(map(len, choices)))
