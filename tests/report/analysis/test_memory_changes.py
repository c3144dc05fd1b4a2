"""What would lower the peak: as in a recording of the changed run itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pyprof.memory import read
from pyprof.report.analysis import memory
from tests.memory import built

if TYPE_CHECKING:
    from pathlib import Path

MB = 1_000_000


def _analysed(path: Path, device: built.Device) -> memory.DeviceMemory:
    return memory.highest_first([read.read(built.write(path / "x.pickle", device))])[0]


def _step(batch: int = 4, *, fused: bool = False) -> built.Device:
    """Run a step whose optimizer needs most; activations grow with the batch."""
    device = built.Device()
    device.alloc(20 * MB, built.APPLY, built.user(3))
    saved = device.alloc(batch * MB, built.CALL, built.user(10))
    work = device.alloc(batch * MB, built.NODE, built.ENGINE)
    device.free(saved, built.NODE, built.ENGINE)
    device.free(work, built.NODE, built.ENGINE)
    if not fused:
        update = device.alloc(20 * MB, built.STEP, built.user(20))
        device.free(update, built.STEP, built.user(20))
    return device


def test_a_fused_optimizer(tmp_path: Path) -> None:
    """The peak is that of a run whose optimizer allocates nothing."""
    device = _analysed(tmp_path, _step())
    (change,) = device.changes
    assert "fused" in change.change
    assert change.peak_bytes == _analysed(tmp_path, _step(fused=True)).peak_bytes
    assert change.saved_bytes == device.peak_bytes - change.peak_bytes == 12 * MB


def test_half_the_batch(tmp_path: Path) -> None:
    """The peak is that of a run with half the batch."""
    device = _analysed(tmp_path, _step(fused=True))
    changes = {change.change: change.peak_bytes for change in device.changes}
    assert changes["half the batch"] == _analysed(tmp_path, _step(2, fused=True)).peak_bytes
    assert set(changes) == {
        "half the batch", "activations of half the width (bfloat16 for float32)"
    }  # fmt: skip


def test_nothing_is_promised_without_evidence(tmp_path: Path) -> None:
    """Of memory of unknown purpose nothing is known to shrink."""
    device = built.Device()
    device.alloc(MB, built.user(1))
    found = _analysed(tmp_path, device)
    assert (found.changes, found.checkpoints) == ((), ())


def _model(checkpointed: int | None = None, layers: int = 3, steps: int = 2) -> built.Device:
    """Train layers, each of which saves what it makes inside and what the next one takes."""
    device = built.Device()
    for _ in range(steps):
        saved: list[list[int]] = []
        for number in range(layers):
            saved.append(_forward(device, number))
            if number == checkpointed:
                device.free(saved[-1].pop(0), built.CALL, built.user(9))
        for number in reversed(range(layers)):
            if number == checkpointed:
                saved[number].insert(0, device.alloc(5 * MB, built.NODE, built.ENGINE))
            for address in saved[number]:
                device.free(address, built.NODE, built.ENGINE)
        device.free(device.alloc(1, built.STEP, built.user(20)), built.STEP, built.user(20))
    return device


def _forward(device: built.Device, number: int) -> list[int]:
    device.range(f"layer:net.{number}", begins=True)
    made = [device.alloc(size * MB, built.CALL, built.user(10 + number)) for size in (5, 2)]
    device.range(f"layer:net.{number}", begins=False)
    return made


@pytest.mark.parametrize("layer", range(3))
def test_a_checkpointed_layer(tmp_path: Path, layer: int) -> None:
    """The peak is that of a run in which the layer is checkpointed."""
    device = _analysed(tmp_path, _model())
    expected = _analysed(tmp_path, _model(layer)).peak_bytes
    found = {each.layer: each for each in device.checkpoints}
    if expected == device.peak_bytes:
        assert f"net.{layer}" not in found
        return
    assert found[f"net.{layer}"].peak_bytes == expected
    assert found[f"net.{layer}"].held_bytes == 5 * MB
    assert found[f"net.{layer}"].recomputed_ns is None
