"""Argument values that save FLOPs or bytes, compared with torch's kernels."""

import math
from typing import Any

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.ops.examples import c64, f32, f64, i32
from pyprof.ops.torch.tensors.pointwise_rules import T

X = f32(5, 8)
Z = c64(5, 8)


def flops_per_element(call: Call, direction: str = "fprop") -> float | None:
    """Return the FLOPs per element of X or Z."""
    flops = ops.cost(call, direction).flops
    return None if flops is None else flops / 40


@pytest.mark.parametrize(
    ("exponent", "forward", "backward"),
    # backward: the power below, times the exponent, times the incoming gradient
    [
        *((0, 0, 0), (1, 0, 2), (2, 1, 2), (3, 2, 3), (4, T, 4), (5, T, T + 2)),
        *((-1, 1, 4), (-2, 2, T + 2), (0.5, T, T + 2), (1.0, 0, 2), (True, 0, 2)),
    ],
)
def test_powers_that_are_products(exponent: float, forward: int, backward: int) -> None:
    for call in (
        Call("Tensor", "pow", (X, exponent)),
        Call("Tensor", "__pow__", (X, exponent)),
        Call("aten", "pow", (X, exponent)),
    ):
        assert flops_per_element(call) == forward
        assert flops_per_element(call, "bprop") == backward
    assert ops.cost(Call("Tensor", "pow", (X, exponent))).bytes == 160 * (2 if exponent else 1)
    assert flops_per_element(Call("Tensor", "pow", (X, X))) == T
    assert flops_per_element(Call("Tensor", "__rpow__", (X, exponent))) == T


@pytest.mark.parametrize(
    ("op", "operands", "forward", "backward"),
    [
        ("mish", 1, 3 * T + 1, 4 * T + 6),  # x t, t = tanh(log1p(exp(x))); t + x s (1 - t t)
        ("div", 2, 1, 1 + 3),  # go / y, and -go z / y of z = x / y
        ("hardsigmoid", 1, 4, 3),  # (x + 3) / 6 between 0 and 1; go / 6 where x is between them
        ("lgamma", 1, T, T + 1),  # go digamma(x)
        ("lerp", 3, 3, 2 + 1 + 2),  # x + w (y - x): go - go w, go w, go (y - x)
        ("clamp_min", 2, 1, 1 + 1),  # go where x, and where the bound is the larger
        ("eq", 2, 1, None),
    ],
)
def test_operations_of_written_out_formulas(
    op: str, operands: int, forward: int, backward: int | None
) -> None:
    call = Call("torch", op, (X,) * operands)
    assert (flops_per_element(call), flops_per_element(call, "bprop")) == (forward, backward)


_NOT = Opaque()


@pytest.mark.parametrize(
    ("call", "each"),
    [
        (Call("Tensor", "clamp", (X, 0.0)), 1),
        (Call("Tensor", "clamp", (X,), {"min": 0.0}), 1),
        (Call("Tensor", "clamp", (X,), {"max": 1}), 1),
        (Call("Tensor", "clamp_", (X, None, 1)), 1),
        (Call("torch", "clip", (X, 0, 1)), 2),
        (Call("aten", "clamp", (X, 0.0, _NOT)), 1),  # a trace writes nothing for None
        (Call("aten", "clamp", (X, _NOT, 1)), 1),
        (Call("aten", "clamp", (X, 0, 1)), 2),
        (Call("aten", "clamp", (X, f32(5, 8), _NOT)), 1),
        (Call("aten", "clamp", (X, _NOT, _NOT)), None),  # emit_nvtx: one, or both
    ],
)
def test_a_clamp_compares_with_the_bounds_that_were_given(call: Call, each: int | None) -> None:
    """Forward and backward; if none was recorded, their number is unknown."""
    assert flops_per_element(call) == each
    if each != 1 or not isinstance(call.args[1] if len(call.args) > 1 else None, Tensor):
        assert flops_per_element(call, "bprop") == each
    elements = sum(isinstance(value, Tensor) for value in call.args) + 1
    assert ops.cost(call).bytes == elements * 160


def test_complex_numbers_count_as_two() -> None:
    """A magnitude is the root of two squares; aliases cost the same."""
    assert flops_per_element(Call("torch", "abs", (Z,))) == 2 + 1 + T
    assert ops.cost(Call("torch", "abs", (Z,))).bytes == 40 * 8 + 40 * 4
    assert flops_per_element(Call("aten", "abs", (Z, f32(5, 8)))) == 3 + T  # out=
    assert flops_per_element(Call("torch", "angle", (Z,))) == T
    assert (
        flops_per_element(Call("torch", "mul", (Z, Z)))
        == flops_per_element(Call("torch", "multiply", (Z, Z)))
        == 6
    )
    assert flops_per_element(Call("torch", "square", (Z,))) == 6
    assert flops_per_element(Call("torch", "true_divide", (Z, Z))) == 9
    assert flops_per_element(Call("torch", "abs", (X,))) == 1
    assert ops.cost(Call("torch", "dist", (Z, Z))).bytes == 2 * 40 * 8 + 4  # a distance is real


@pytest.mark.parametrize("number", ["int64", "float64", "bool"])
@pytest.mark.parametrize("op", ["add", "mul", "sub", "div", "eq", "maximum"])
def test_a_number_that_torch_wraps_moves_nothing(op: str, number: str) -> None:
    """ATen's operators take it as a tensor without dimensions, but the kernel as an argument."""
    value: Any = {"int64": 2, "float64": 2.5, "bool": True}[number]
    plain = ops.cost(Call("torch", op, (X, value)))
    wrapped = Tensor((), number)
    assert ops.cost(Call("aten", op, (X, wrapped))).bytes == plain.bytes
    assert ops.cost(Call("aten", op, (wrapped, X))).bytes == plain.bytes
    assert ops.cost(Call("aten", f"{op}_", (X, wrapped))).flops == plain.flops
    single = f32()  # a tensor's own value lies in memory
    assert ops.cost(Call("aten", op, (X, single))).bytes == (plain.bytes or 0) + 4
    alone = ops.cost(Call("aten", op, (wrapped, wrapped))).bytes
    assert alone == ops.cost(Call("torch", op, (wrapped, wrapped))).bytes


@pytest.mark.parametrize("low", [None, 0.0, f64()])
def test_promotion_with_a_wrapped_number_is_torchs(low: Value) -> None:
    """A float makes integers float32, not the float64 that it is wrapped in."""
    torch = pytest.importorskip("torch")
    whole = i32(5, 8)
    number = f64() if low is None else low
    mod = "aten" if isinstance(number, Tensor) else "torch"
    found = ops.cost(Call(mod, "mul", (whole, number)))
    out = torch.ones(5, 8, dtype=torch.int32) * 2.5
    assert found.bytes == 160 + out.numel() * out.element_size()


def test_powers_of_1_and_0_are_a_copy_and_a_fill() -> None:
    """Nothing is multiplied, and a power of 0 reads nothing."""
    torch = pytest.importorskip("torch")
    x = torch.full((3,), math.nan)
    assert torch.equal(x.pow(0), torch.ones(3))
    with torch.profiler.profile(record_shapes=True) as made:
        x.pow(1)
        x.pow(0)
    names = {event.name for event in made.events()}
    assert {"aten::copy_", "aten::fill_"} <= names
