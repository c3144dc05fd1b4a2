"""Formulas of `pooling`, by their worked examples and foreign arguments; windows against torch."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import NN, f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.pooling")


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_windows_side_by_side_compare_each_element_once(rank: int) -> None:
    x = f32(2, *[8] * rank)
    assert ops.cost(Call(NN, f"max_pool{rank}d", (x, 2))).flops == x.numel


@pytest.mark.parametrize(("size", "outputs"), [(7, 3), (8, 4), (5, 5), (3, 7), (9, 1)])
def test_adaptive_windows_are_those_of_torch(size: int, outputs: int) -> None:
    """Each element of a window is a nonzero entry of torch's own Jacobian."""
    torch = pytest.importorskip("torch")
    pool = torch.nn.functional.adaptive_avg_pool1d
    jacobian = torch.autograd.functional.jacobian(lambda x: pool(x, outputs), torch.ones(1, size))
    cost = ops.cost(Call(NN, "adaptive_avg_pool1d", (f32(1, size), outputs)))
    assert cost.flops == int(jacobian.count_nonzero())
