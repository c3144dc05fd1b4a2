"""Formulas of `random_numbers`, by their worked examples and foreign arguments."""

from pyprof import ops
from pyprof.marker import Call, Opaque, Value
from pyprof.ops.examples import c64, f32
from pyprof.ops.torch.tensors.pointwise_rules import T
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.random_numbers")
_X = f32(5, 8)
_Z = c64(5, 8)


def _each(call: Call, direction: str = "fprop") -> float | None:
    flops = ops.cost(call, direction).flops
    return None if flops is None else flops / 40


def test_random_numbers_cost_the_same_by_every_name() -> None:
    """A normal number is two functions; scaling and shifting are one FLOP each."""
    empty: tuple[Value, ...] = (Opaque(),)
    for call in (
        Call("torch", "randn", (5, 8)),
        Call("torch", "randn", ((5, 8),)),
        Call("torch", "randn_like", (_X,)),
        Call("Tensor", "normal_", (_X,)),
        Call("Tensor", "normal_", (_X, 0, 1)),
        Call("torch.nn.init", "normal_", (_X,)),
        Call("aten", "normal_", (_X, 0.0, 1.0, *empty)),
        Call("aten", "randn", ((5, 8), *empty * 4)),
        Call("torch", "normal", (0.0, 1.0, (5, 8))),
        Call("aten", "normal", (0.0, 1.0, (5, 8), *empty * 4, False)),
    ):
        assert _each(call) == 2 * T, call
        assert ops.cost(call).bytes == 160, call
    assert _each(Call("torch.nn.init", "normal_", (_X,), {"std": 0.02})) == 2 * T + 1
    assert _each(Call("Tensor", "normal_", (_X, 3, 2))) == 2 * T + 2
    by_tensors = ops.cost(Call("torch", "normal", (_X, _X)))
    assert (by_tensors.flops, by_tensors.bytes) == (40 * (2 * T + 2), 3 * 160)
    scaled = ops.cost(Call("torch", "normal", (_X, 2.0)))
    assert (scaled.flops, scaled.bytes) == (40 * (2 * T + 2), 2 * 160)
    spread = ops.cost(Call("torch", "normal", (0.0, _X)))
    assert (spread.flops, spread.bytes) == (40 * (2 * T + 1), 2 * 160)
    assert _each(Call("torch", "randn", ((5, 8),), {"dtype": "complex64"})) == 4 * T
    assert _each(Call("aten", "normal_", (_Z, 0.0, 1.0, *empty))) == 4 * T
    assert _each(Call("Tensor", "uniform_", (_X,))) == _each(Call("torch", "rand", (5, 8))) == 0
    assert _each(Call("Tensor", "uniform_", (_X, 0, 2))) == 1
    assert _each(Call("Tensor", "uniform_", (_X, 1, 2))) == 1
    assert _each(Call("Tensor", "uniform_", (_X, -1, 1))) == 2
