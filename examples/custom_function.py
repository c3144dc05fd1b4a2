"""A custom autograd function: `pyprof.wrap` marks its forward and backward as ops."""

from __future__ import annotations

from typing import Any

import torch

import pyprof


class Foo(torch.autograd.Function):
    """The elementwise product of two tensors, with its own backward."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:  # noqa: ANN401 - torch's context
        """Multiply."""
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # noqa: ANN401 - torch's context
        """Return the gradients of both."""
        a, b = ctx.saved_tensors
        return grad * b, grad * a


def main() -> None:
    """Run it forward and backward."""
    pyprof.init()
    pyprof.wrap(Foo, "forward")
    pyprof.wrap(Foo, "backward")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = torch.rand(128, 128, device=device, requires_grad=True)
    b = torch.rand(128, 128, device=device, requires_grad=True)

    with pyprof.profile():
        Foo.apply(a, b).sum().backward()
    print("gradient equals the other factor:", torch.equal(a.grad, b.detach()))


if __name__ == "__main__":
    main()
