"""Ops with several FLOPs per element and some per row, counted by hand."""

import math

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.ops.examples import f32, i64

X = f32(64, 48)
N, ROWS, ROOT = 64 * 48, 64, 20
SQUARE, RIGHT = f32(32, 32), f32(32, 8)
PARTS = (f32(20, 30),) * 3
_F = "torch.nn.functional"
UNTOLD = Opaque("")


@pytest.mark.parametrize(
    ("call", "flops"),
    [
        # an absolute value or a square, a sum, and a root where there is one
        (Call("torch.linalg", "vector_norm", (X, 1, 1)), 2 * N),
        (Call("torch.linalg", "vector_norm", (X, math.inf, 1)), 2 * N),
        (Call("torch.linalg", "vector_norm", (X, 3.0, 1)), 22 * N + ROOT * ROWS),
        (Call("torch", "_foreach_norm", (PARTS, 1)), 2 * 1800),
        (Call(_F, "softmin", (X, 1)), 25 * N),
        (Call(_F, "dropout", (X, 0.0)), 0),
        (Call(_F, "alpha_dropout", (X, 0.5, True)), 7 * N),
        # what remains of 32 is not lost before it is multiplied
        (Call("torch.linalg", "solve", (SQUARE, RIGHT)), 2 * 32**3 // 3 + 2 * 32**2 * 8),
    ],
    ids=lambda value: f"{value.op}" if isinstance(value, Call) else str(value),
)
def test_flops_per_element_and_per_row(call: Call, flops: int) -> None:
    assert ops.cost(call).flops == flops


def _entropy(target: Tensor, **more: Value) -> int | None:
    return ops.cost(Call(_F, "cross_entropy", (X, target), more)).flops


def test_cross_entropy_of_labels_and_of_distributions() -> None:
    """Log-softmax, then one class added, every class if smoothed, or all multiplied and added."""
    labels = i64(64)
    assert _entropy(labels) == 24 * N + 2 * ROWS + 1
    assert _entropy(labels, label_smoothing=0.1) == 25 * N + 2 * ROWS + 1
    assert _entropy(X) == 26 * N + ROWS + 1


def test_kl_div_of_a_log_target() -> None:
    """exp(t) * (t - x), one FLOP less than t * log(t) - t * x."""
    each = [
        ops.cost(Call(_F, "kl_div", (X, X), {"log_target": log, "reduction": "sum"})).flops
        for log in (False, True)
    ]
    assert each == [24 * N, 23 * N]


def test_missing_dimensions_reduce_all() -> None:
    """If the value of a flag was recorded, so would a list of dimensions have been."""
    told = Call("aten", "linalg_vector_norm", (X, 2, UNTOLD, False, UNTOLD))
    assert ops.cost(told).flops == 2 * N + ROOT
    assert ops.cost(Call("aten", "var", (X, UNTOLD, 1, False))).flops == 4 * N + 1
    untold = Call("aten", "linalg_vector_norm", (X, UNTOLD, UNTOLD, UNTOLD, UNTOLD))
    assert ops.cost(untold).flops is None


def test_a_factor_of_lists() -> None:
    """ATen's third argument scales the second list; with one list, the second is added."""
    lists = (PARTS, PARTS)
    assert ops.cost(Call("aten", "_foreach_add_", (*lists, -0.1))).flops == 2 * 1800
    assert ops.cost(Call("aten", "_foreach_add_", (*lists, 1.0))).flops == 1800
    assert ops.cost(Call("aten", "_foreach_add_", (PARTS, 0.5))).flops == 1800
    assert ops.cost(Call("torch", "_foreach_sub", lists, {"alpha": 2})).flops == 2 * 1800


def test_atens_own_order_of_an_instance_norms_arguments() -> None:
    """Scale and shift come before the running statistics there."""
    image, channel = f32(2, 8, 12, 12), f32(8)
    aten = Call("aten", "instance_norm", (image, channel, channel, None, None, True, 0.1, 1e-5))
    python = Call(_F, "instance_norm", (image, None, None, channel, channel, True))
    assert ops.cost(aten).flops == ops.cost(python).flops == 8 * image.numel


@pytest.mark.parametrize(("mode", "gates", "stacked"), [(0, 2, 1), (1, 21, 1), (2, 108, 4)])
def test_a_recurrent_layer_on_the_cpu(mode: int, gates: int, stacked: int) -> None:
    """Two products per step, and the gates; twice that for backward."""
    steps, batch, wide, hidden = 10, 4, 16, 24
    x, state = f32(steps, batch, wide), f32(1, batch, hidden)
    rows = stacked * hidden
    weights = tuple(f32(rows, *more) for more in ((wide,), (hidden,), (), ()))
    rest = (False, (), mode, hidden, 1)
    forward = Call("aten", "mkldnn_rnn_layer", (x, *weights, state, state, *rest))
    products = 2 * steps * batch * rows * (wide + hidden)
    flops = products + gates * steps * batch * hidden
    assert ops.cost(forward).flops == flops
    results = (f32(steps, batch, hidden), state, state, None, None, None)
    back = (x, *weights, state, state, *results, False, mode)
    assert ops.cost(Call("aten", "mkldnn_rnn_layer_backward", back)).flops == 2 * flops
