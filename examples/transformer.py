"""A small transformer: attention as explicit matrix products, forward and backward."""

from __future__ import annotations

import torch
from torch import nn

import pyprof


class Block(nn.Module):
    """Single-head attention and an MLP, each with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend, then transform each token."""
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        weights = (query @ key.transpose(1, 2) / x.shape[-1] ** 0.5).softmax(-1)
        x = x + self.out(weights @ value)
        return x + self.mlp(x)


def main() -> None:
    """Capture one step."""
    pyprof.init()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(Block(32), Block(32)).to(device)
    tokens = torch.randn(2, 8, 32, device=device)

    with pyprof.profile():
        loss = model(tokens).square().mean()
        loss.backward()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
