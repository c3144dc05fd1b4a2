"""Backward costs from the forward call, compared with the ops that autograd then runs."""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from pyprof import ops
from tests.ops.torch_calls import Recorder, python_call

N = 24


def _matrix(*shape: int) -> Any:  # noqa: ANN401 - a tensor
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def _run(mod: str, name: str, *args: Any, **kwargs: Any) -> tuple[ops.Cost, int]:  # noqa: ANN401 - as the op
    """Return the cost of an op's backward pass, and the FLOPs of the ATen ops that it ran."""
    home = torch
    for part in mod.split(".")[1:]:
        home = getattr(home, part)
    given = [a.clone().requires_grad_() if _differentiable(a) else a for a in args]
    result = getattr(home, name)(*given, **kwargs)
    outputs = [t for t in (result if isinstance(result, tuple) else (result,)) if t.requires_grad]
    inputs = [a for a in given if _differentiable(a)]
    with Recorder() as recorder:
        torch.autograd.grad(outputs, inputs, [torch.ones_like(t) for t in outputs])
    ran = sum(ops.cost(call).flops or 0 for _, call, *_ in recorder.made)
    return ops.cost(python_call(mod, name, *args, **kwargs), "bprop"), ran


def _differentiable(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def test_the_backward_of_lu_solve_has_the_flops_of_the_solves_that_autograd_runs() -> None:
    """Except for element-wise ops, a small part that only the ops themselves have."""
    factors = torch.linalg.lu_factor(_matrix(N, N) + N * torch.eye(N))
    found, ran = _run("torch.linalg", "lu_solve", *factors, _matrix(N, 5))
    assert found.flops == pytest.approx(ran, rel=0.1)


@pytest.mark.parametrize("name", ["neg", "abs", "square", "exp", "sqrt", "sin", "tanh", "sigmoid"])
def test_a_pointwise_gradient_has_the_operations_that_autograd_runs(name: str) -> None:
    found, ran = _run("torch", name, _matrix(N, N).abs())
    assert found.flops == ran


@pytest.mark.parametrize(
    ("name", "args"),
    [("nansum", (0,)), ("nanmean", (0,)), ("max", ()), ("min", ()), ("median", ()), ("amax", (0,))],
)
def test_a_gradient_that_depends_on_the_input_reads_it(name: str, args: tuple[int, ...]) -> None:
    """The input decides which elements get a gradient."""
    x = _matrix(N, N)
    found, ran = _run("torch", name, x, *args)
    assert found.bytes is not None
    assert found.flops is not None
    assert found.bytes >= 2 * x.nbytes
    assert 0 < found.flops <= ran
