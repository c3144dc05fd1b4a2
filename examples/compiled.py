"""torch.compile: what runs is a fused kernel of Inductor, compiled before the capture begins."""

from __future__ import annotations

import torch
from torch import nn

import pyprof


def main() -> None:
    """Compile by a first call, then capture the second."""
    pyprof.init()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(device)
    compiled = torch.compile(model)
    x = torch.randn(8, 16, device=device)

    with torch.no_grad():
        compiled(x)
        with pyprof.profile():
            result = compiled(x)
        print("same as in Python:", torch.allclose(result, model(x), atol=1e-5))


if __name__ == "__main__":
    main()
