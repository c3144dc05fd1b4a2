"""Formulas of `conv`, by their worked examples and foreign arguments; gradients that ran."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import NN, f16
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.conv")


@pytest.mark.parametrize("name", ["conv2d", "conv_transpose2d"])
@pytest.mark.parametrize(("kernels", "products"), [(None, 2), (1, 1), (2, 2)])
def test_one_kernel_is_the_gradient_of_the_filter(
    name: str, kernels: int | None, products: int
) -> None:
    """The first layer's input needs no gradient; another number leaves it open."""
    call = Call(NN, name, (f16(2, 4, 8, 8), f16(4, 4, 3, 3)))
    forward = ops.cost(call).flops
    assert forward is not None
    assert ops.cost(call, "bprop", gemm_kernels=kernels).flops == products * forward
