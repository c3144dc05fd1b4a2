"""torch.compile: fused kernels of Inductor, compiled before the capture begins."""

from __future__ import annotations

import torch
from torch import nn

import pyprof


def main() -> None:
    """Compile in a first training step, then capture the second."""
    pyprof.init()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(device)
    compiled = torch.compile(model)
    x = torch.randn(8, 16, device=device)

    def train_step(net: nn.Module) -> torch.Tensor:
        model.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    train_step(compiled)
    with pyprof.profile():
        loss = train_step(compiled)
    print("same as in Python:", torch.allclose(loss, train_step(model), atol=1e-5))


if __name__ == "__main__":
    main()
