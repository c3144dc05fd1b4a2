"""Formulas of `reductions`, by their worked examples and foreign arguments; norms by hand."""

import math

import pytest

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import f32
from pyprof.ops.torch.tensors.pointwise_rules import T
from pyprof.ops.torch.tensors.reductions import norm_cost
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.reductions")


@pytest.mark.parametrize("order", [0, 1, math.inf, -math.inf])
def test_a_norm_that_counts_sums_or_compares_takes_no_power(order: float) -> None:
    assert norm_cost(order) == (2, 0)
    assert norm_cost(-3) == (2 + T, T)


def test_the_backward_pass_of_a_nuclear_norm_is_unknown() -> None:
    """It multiplies the matrices of singular vectors."""
    assert ops.cost(Call("torch", "norm", (f32(5, 5), "nuc")), "bprop").flops is None
    named = Call("torch.linalg", "norm", (f32(5, 5),), {"ord": "nuc"})
    assert [ops.cost(named, way).flops for way in ("fprop", "bprop")] == [None, None]
    assert ops.cost(Call("torch", "norm", (f32(5, 5), "fro")), "bprop").flops == 50


@pytest.mark.parametrize(
    ("mod", "op", "args", "flops"),
    [
        ("torch.linalg", "norm", (f32(5, 5), 2), None),
        ("torch.linalg", "norm", (f32(3, 5, 5), -2, (1, 2)), None),
        ("aten", "linalg_norm", (f32(5, 5), 2, None, False, None), None),
        ("torch.linalg", "norm", (f32(5, 5), 2, 1), 150),
        ("torch.linalg", "norm", (f32(5, 5),), 70),
        ("torch.linalg", "norm", (f32(5), 2), 30),
        ("torch", "norm", (f32(5, 5), 2), 70),
    ],
)
def test_torch_linalg_takes_the_singular_values_of_a_matrix(
    mod: str, op: str, args: tuple[Value, ...], flops: int | None
) -> None:
    """In orders 2 and -2; torch.norm takes the matrix for a vector, as norms over one `dim` do."""
    ways = [ops.cost(Call(mod, op, args), way).flops for way in ("fprop", "bprop")]
    assert (ways[0], ways[1] is None) == (flops, flops is None)
