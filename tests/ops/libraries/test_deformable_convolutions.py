"""Formulas of `deformable_convolutions`, by their worked examples and the kernels' arithmetic."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of
from tests.ops.counted import Counted, Operations, interpolated, weights

test_formulas_keep_the_contract = contract_of("libraries.deformable_convolutions")

N, C, K, H, W, R, S, GROUPS = 2, 4, 6, 7, 8, 3, 2, 2
P, Q = 3, 5  # (7 + 2 * 1 - 2 * 2 - 1) // 2 + 1, (8 + 2 * 0 - 3 * 1 - 1) // 1 + 1
X, FILTER, BIAS, OUT = f32(N, C, H, W), f32(K, C // GROUPS, R, S), f32(K), f32(N, K, P, Q)
OFFSET = f32(N, 2 * R * S, P, Q)
NUMBERS = (2, 1, 1, 0, 2, 3, GROUPS, 1)  # strides, padding, dilation
SAMPLES = N * C * R * S * P * Q
PRODUCT = 2 * SAMPLES * K // GROUPS
PLACE = (0.25, 0.5)


def _operands(*, masked: bool) -> tuple[Value, ...]:
    return (X, FILTER, OFFSET, f32(N, R * S, P, Q) if masked else f32(N, 1), BIAS)


def _sample(done: Operations) -> Counted:
    return interpolated((Counted(1, done),) * 4, *PLACE)


@pytest.mark.parametrize("masked", [False, True])
def test_forward_counts_a_sample_for_each_element_of_the_columns(*, masked: bool) -> None:
    done = Operations()
    assert (_sample(done) * 0.5).value == pytest.approx(0.5)  # the mask, else 1
    args = (*_operands(masked=masked), *NUMBERS, masked)
    cost = ops.cost(Call("torchvision", "deform_conv2d", args))
    assert cost.flops == PRODUCT + SAMPLES * done.count
    assert (cost.params["P"], cost.params["Q"]) == (P, Q)


def _slope(low: Counted, high: Counted, weight: float) -> Counted:
    return (high - low) * weight + (high - low) * (1 - weight)


@pytest.mark.parametrize("masked", [False, True])
def test_backward_counts_what_each_element_of_the_columns_gradient_meets(*, masked: bool) -> None:
    done = Operations()
    gradient, total = Counted(1, done), Counted(0, done)
    for weight in weights(*PLACE):
        total += gradient * weight * 0.5
    assert total.value == pytest.approx(0.5)
    for weight in PLACE:
        total += _slope(gradient, gradient, weight) * gradient * 0.5
    if masked:
        total += _sample(done) * gradient
    _sample(done) * 0.5  # again, for the filter's gradient
    args = (OUT, *_operands(masked=masked), *NUMBERS, masked)
    cost = ops.cost(Call("torchvision", "_deform_conv2d_backward", args))
    assert cost.flops == 2 * PRODUCT + SAMPLES * done.count
