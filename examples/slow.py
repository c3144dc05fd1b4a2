"""A small attention network, slower than it needs to be: docs/tutorial.md finds out where."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof

HEADS, WIDTH, LENGTH, BATCH, STEPS = 8, 128, 96, 16, 5


class Attention(nn.Module):
    """Attention, one head after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the positions."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        size = WIDTH // HEADS
        heads = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = q[..., part] @ k[..., part].transpose(1, 2) / size**0.5
            heads.append(scores.softmax(-1) @ v[..., part])
        return self.out(torch.cat(heads, dim=-1))


def positions() -> torch.Tensor:
    """Compute the table of positions."""
    angle = np.arange(LENGTH)[:, None] / 10_000 ** (np.arange(WIDTH // 2) / WIDTH * 2)
    return torch.from_numpy(np.concatenate([np.sin(angle), np.cos(angle)], axis=1))


class Net(nn.Module):
    """Two blocks between an embedding and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, WIDTH)
        self.blocks = nn.ModuleList(Attention() for _ in range(2))
        self.classify = nn.Linear(WIDTH, 10)
        self.double()  # else: "expected m1 and m2 to have the same dtype"

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Classify sequences."""
        x = self.embed(tokens) + positions()
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
