"""A custom module: its layers are marked automatically; `pyprof.wrap` marks it as an op."""

from __future__ import annotations

import torch

import pyprof


class Foo(torch.nn.Module):
    """Scale and shift; your own formula could give its cost as one op."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(size))
        self.shift = torch.nn.Parameter(torch.zeros(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale and shift."""
        return self.scale * x + self.shift


def main() -> None:
    """Run it forward and backward."""
    pyprof.init()
    pyprof.wrap(Foo, "forward")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    foo = Foo(4).to(device)

    with pyprof.profile():
        foo(torch.ones(4, device=device)).sum().backward()
    print("gradient of the shift:", foo.shift.grad.tolist())


if __name__ == "__main__":
    main()
