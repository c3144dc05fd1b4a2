"""Formulas of `random_numbers`, by their worked examples and foreign arguments."""

from pyprof import ops
from pyprof.marker import Call, Opaque, Value
from pyprof.ops.torch.tensors.pointwise_rules import T
from tests.ops.contract import contract_of
from tests.ops.torch.tensors.test_pointwise_rules import X, Z, flops_per_element

test_formulas_keep_the_contract = contract_of("torch.tensors.random_numbers")


def test_random_numbers_cost_the_same_by_every_name() -> None:
    """A normal number is two functions; scaling and shifting are one FLOP each."""
    empty: tuple[Value, ...] = (Opaque(),)
    for call in (
        Call("torch", "randn", (5, 8)),
        Call("torch", "randn", ((5, 8),)),
        Call("torch", "randn_like", (X,)),
        Call("Tensor", "normal_", (X,)),
        Call("Tensor", "normal_", (X, 0, 1)),
        Call("torch.nn.init", "normal_", (X,)),
        Call("aten", "normal_", (X, 0.0, 1.0, *empty)),
        Call("aten", "randn", ((5, 8), *empty * 4)),
        Call("torch", "normal", (0.0, 1.0, (5, 8))),
        Call("aten", "normal", (0.0, 1.0, (5, 8), *empty * 4, False)),
    ):
        assert flops_per_element(call) == 2 * T, call
        assert ops.cost(call).bytes == 160, call
    assert flops_per_element(Call("torch.nn.init", "normal_", (X,), {"std": 0.02})) == 2 * T + 1
    assert flops_per_element(Call("Tensor", "normal_", (X, 3, 2))) == 2 * T + 2
    by_tensors = ops.cost(Call("torch", "normal", (X, X)))
    assert (by_tensors.flops, by_tensors.bytes) == (40 * (2 * T + 2), 3 * 160)
    scaled = ops.cost(Call("torch", "normal", (X, 2.0)))
    assert (scaled.flops, scaled.bytes) == (40 * (2 * T + 2), 2 * 160)
    spread = ops.cost(Call("torch", "normal", (0.0, X)))
    assert (spread.flops, spread.bytes) == (40 * (2 * T + 1), 2 * 160)
    assert flops_per_element(Call("torch", "randn", ((5, 8),), {"dtype": "complex64"})) == 4 * T
    assert flops_per_element(Call("aten", "normal_", (Z, 0.0, 1.0, *empty))) == 4 * T
    assert (
        flops_per_element(Call("Tensor", "uniform_", (X,)))
        == flops_per_element(Call("torch", "rand", (5, 8)))
        == 0
    )
    assert flops_per_element(Call("Tensor", "uniform_", (X, 0, 2))) == 1
    assert flops_per_element(Call("Tensor", "uniform_", (X, 1, 2))) == 1
    assert flops_per_element(Call("Tensor", "uniform_", (X, -1, 1))) == 2
