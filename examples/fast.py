"""The network of slow.py after docs/tutorial.md: all heads at once, in float32."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof

HEADS, WIDTH, LENGTH, BATCH, STEPS = 8, 128, 96, 16, 5


class Attention(nn.Module):
    """Attention, all heads at once."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the positions."""
        split = self.qkv(x).view(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).flatten(2))


def positions() -> torch.Tensor:
    """Compute the table of positions."""
    angle = np.arange(LENGTH)[:, None] / 10_000 ** (np.arange(WIDTH // 2) / WIDTH * 2)
    table = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return torch.from_numpy(table.astype(np.float32))


class Net(nn.Module):
    """Two blocks between an embedding and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, WIDTH)
        self.blocks = nn.ModuleList(Attention() for _ in range(2))
        self.classify = nn.Linear(WIDTH, 10)
        self.register_buffer("positions", positions())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Classify sequences."""
        x = self.embed(tokens) + self.positions
        for block in self.blocks:
            x = x + block(x)
        return self.classify(x.mean(1))


def main() -> None:
    """Train for some steps, and capture all but the first."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    tokens = torch.randint(1000, (BATCH, LENGTH))
    labels = torch.randint(10, (BATCH,))

    def train_step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens), labels)
        loss.backward()
        optimizer.step()
        pyprof.step()
        return loss.detach()

    train_step()
    with pyprof.profile():
        for _ in range(STEPS):
            loss = train_step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
