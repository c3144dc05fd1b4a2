"""A small residual network in mixed precision: bfloat16 with `torch.autocast`."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof


class Block(nn.Module):
    """Two convolutions with a skip connection."""

    def __init__(self, planes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(planes, planes, 3, padding=1)
        self.norm = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply both and add the input."""
        return F.relu(x + self.conv2(F.relu(self.norm(self.conv1(x)))))


def main() -> None:
    """Capture one step; the backward pass is outside autocast."""
    pyprof.init()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), Block(8), *head).to(device)
    images = torch.randn(2, 3, 15, 15, device=device)
    labels = torch.randint(10, (2,), device=device)

    with pyprof.profile():
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(images), labels)
        loss.backward()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
