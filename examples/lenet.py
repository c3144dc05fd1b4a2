"""LeNet: forward, backward and optimizer steps, with every op marked.

    nsys profile -o net --capture-range=cudaProfilerApi --capture-range-end=stop \
        python examples/lenet.py

Without a GPU, it runs on the CPU.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof


class LeNet(nn.Module):
    """Two convolutions, three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Classify images of 32 by 32."""
        x = F.max_pool2d(F.relu(self.conv1(x)), (2, 2))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def main() -> None:
    """Train for a few steps; capture all but the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()

    pyprof.init()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = LeNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(options.batch, 1, 32, 32, device=device)
    labels = torch.randint(10, (options.batch,), device=device)

    def train_step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        pyprof.step()
        return loss.detach()

    train_step()
    with pyprof.profile():
        for _ in range(options.steps):
            loss = train_step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
