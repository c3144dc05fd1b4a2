"""Your own names: `pyprof.annotate` as a context manager and as a decorator, with timers."""

from __future__ import annotations

import torch
from torch import nn

import pyprof


class Bottleneck(nn.Module):
    """A residual block whose parts have their own names besides those of its modules."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(planes, planes // 4, 1)
        self.mix = nn.Conv2d(planes // 4, planes // 4, 3, padding=1)
        self.expand = nn.Conv2d(planes // 4, planes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the block and add the input."""
        with pyprof.annotate("squeeze"):
            y = self.reduce(x).relu()
        with pyprof.annotate("body"):
            y = self.mix(y).relu()
            y = self.expand(y)
        with pyprof.annotate("residual"):
            return (x + y).relu()


@pyprof.annotate("validation")
def validate(net: nn.Module, x: torch.Tensor) -> float:
    """Return the mean output."""
    with torch.no_grad():
        return net(x).mean().item()


def main() -> None:
    """Run the net and print how long each part took."""
    pyprof.init(timers=True)
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(Bottleneck(16), Bottleneck(16)).to(device)
    x = torch.randn(2, 16, 8, 8, device=device)

    with pyprof.profile():
        for _ in range(3):
            validate(net, x)
    pyprof.print_timings()


if __name__ == "__main__":
    main()
