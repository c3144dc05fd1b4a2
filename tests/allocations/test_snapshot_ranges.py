"""Layers, directions and steps from ranges in a snapshot."""

from pathlib import Path

import numpy as np

from pyprof.allocations import read
from tests.allocations import built


def _labels(path: Path, name: str) -> dict[int, str | None]:
    """Map the size of each block to one of its labels."""
    (device,) = read.read(path).devices
    sizes = device.history.blocks.bytes.tolist()
    labels = device.history.labels[name].at(np.arange(len(sizes)))
    return dict(zip(sizes, labels, strict=True))


def test_layers_are_those_of_ranges(tmp_path: Path) -> None:
    """init()'s layers and the user's ranges; else the annotation in the snapshot."""
    device = built.Device()
    device.range("layer:encoder.0", begins=True)
    device.alloc(1)
    device.range("loss", begins=True)
    device.alloc(2)
    device.range("layer:encoder.0", begins=False)  # takes along what was left open inside
    device.alloc(3)
    device.events[-1]["user_metadata"] = "experts"
    device.alloc(4)
    path = built.write(tmp_path / "x.pickle", device)
    assert _labels(path, "layer") == {1: "encoder.0", 2: "loss", 3: "experts", 4: None}


def test_directions_follow_from_ranges_if_stacks_have_none(tmp_path: Path) -> None:
    """A user's range may be named `backward`."""
    device = built.Device()
    device.range("backward", begins=True)
    device.alloc(100, built.user(1))
    device.alloc(200, built.CALL, built.user(1))
    device.range("backward", begins=False)
    device.alloc(300, built.user(1))
    path = built.write(tmp_path / "x.pickle", device)
    assert _labels(path, "direction") == {100: "backward", 200: "forward", 300: None}


def test_ranges_of_the_optimizer_end_steps(tmp_path: Path) -> None:
    device = built.Device()
    for _ in range(5):
        device.alloc(512, built.user(4))
        for begins in (True, False):
            device.range("Optimizer.step#SGD.step", begins=begins)
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    marked_by, ends = recorded.steps
    assert marked_by == "Optimizer.step"
    assert recorded.history.level[[*ends]].tolist() == [512, 1024, 1536, 2048, 2560]
