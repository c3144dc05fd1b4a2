"""Train an image classifier as on ImageNet: a ResNet, data workers, mixed precision, validation.

    pyprof capture -o net examples/imagenet.py --layers 50 --size 224 --batch 128 --amp
    pyprof capture --steps 20,2,5 -o net examples/imagenet.py --steps 100

Images are random, and the network is small by default, so that it runs anywhere.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn
from torch.utils.data import DataLoader, Dataset

import pyprof

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTHS = {10: (1, 1, 1, 1), 18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
BOTTLENECK = 50


class Block(nn.Module):
    """Two convolutions, or three with a bottleneck, and a shortcut."""

    def __init__(self, before: int, planes: int, after: int, stride: int) -> None:
        super().__init__()
        kernels, strides = ((3, 3), (stride, 1))
        if after != planes:
            kernels, strides = ((1, 3, 1), (1, stride, 1))
        widths = [before, *[planes] * (len(kernels) - 1), after]
        self.convs = nn.ModuleList(
            nn.Conv2d(a, b, size, step, size // 2, bias=False)
            for a, b, size, step in zip(widths, widths[1:], kernels, strides, strict=False)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for width in widths[1:])
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add what the convolutions give to the input."""
        y = x
        for place, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(F.relu(y) if place else y))
        return F.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, four stages of blocks, a classifier."""

    def __init__(self, layers: int, width: int, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )  # fmt: skip
        self.stages = nn.Sequential(*self._blocks(layers, width))
        self.classify = nn.Linear(self.channels, classes)

    def _blocks(self, layers: int, width: int) -> Iterator[Block]:
        self.channels = width
        for stage, depth in enumerate(DEPTHS[layers]):
            planes = width << stage
            after = planes * (4 if layers >= BOTTLENECK else 1)
            for place in range(depth):
                yield Block(self.channels, planes, after, 1 if place or not stage else 2)
                self.channels = after

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Classify."""
        return self.classify(self.stages(self.stem(images)).mean((2, 3)))


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Random images with labels."""

    def __init__(self, count: int, size: int, classes: int) -> None:
        self.count, self.size, self.classes = count, size, classes

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Draw an image; the same one for the same index."""
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, self.size, self.size, generator=generator), index % self.classes


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, choices=DEPTHS, default=10)
    parser.add_argument("--width", type=int, default=8, help="of the first stage; 64 in ResNet")
    parser.add_argument("--size", type=int, default=32, help="of the images; 224 on ImageNet")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--amp", action="store_true", help="float16 on a GPU, bfloat16 on a CPU")
    parser.add_argument("--channels-last", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Train, and capture the training steps alone, without the first."""
    options = arguments()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    model = ResNet(options.layers, options.width, options.classes).to(device)
    model = model.to(memory_format=layout)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device, enabled=options.amp and device == "cuda")
    half = torch.float16 if device == "cuda" else torch.bfloat16
    images = Images(options.batch * options.steps, options.size, options.classes)
    pinned = device == "cuda"
    loader = DataLoader(images, options.batch, num_workers=options.workers, pin_memory=pinned)

    def train_step(batch: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        batch = batch.to(device, non_blocking=True, memory_format=layout)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device, half, enabled=options.amp):
            loss = F.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        pyprof.step()
        return loss.detach()

    batches = iter(loader)
    train_step(*next(batches))
    with pyprof.profile():
        for batch, labels in batches:
            loss = train_step(batch, labels)
    print(f"loss {loss.item():.3f}, {validate(model, loader, device)} of {len(images)} right")


def validate(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, int]], device: str) -> int:
    """Count the images that the model classifies rightly."""
    model.eval()
    right = 0
    with torch.inference_mode():
        for batch, labels in loader:
            right += int((model(batch.to(device)).argmax(1) == labels.to(device)).sum())
    return right


if __name__ == "__main__":
    main()
