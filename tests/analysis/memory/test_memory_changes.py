"""Predicted peaks of changes, compared with recordings of the changed run."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof.allocations import read, snapshot_device
from pyprof.analysis.memory import peaks
from pyprof.answers.memory_answer import CheckpointedLayer, DeviceMemory, Memory
from pyprof.render.text import memory_text as words
from tests.allocations import built
from tests.analysis.memory.test_peaks import analysed
from tests.known import known

MB = 1_000_000


def _analysed(path: Path, device: built.Device) -> DeviceMemory:
    return analysed(built.write(path / "x.pickle", device))


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


def test_a_fused_optimizers_peak_is_that_of_its_own_run(tmp_path: Path) -> None:
    device = _analysed(tmp_path, _step())
    (change,) = (change for change in device.changes if "fused" in change.change)
    assert change.peak_bytes == _analysed(tmp_path, _step(fused=True)).peak_bytes
    assert change.saved_bytes == device.peak_bytes - change.peak_bytes == 12 * MB


def test_half_the_batch_has_half_the_activations(tmp_path: Path) -> None:
    device = _analysed(tmp_path, _step(fused=True))
    changes = {change.change: change.peak_bytes for change in device.changes}
    assert changes["half the batch"] == _analysed(tmp_path, _step(2, fused=True)).peak_bytes
    assert set(changes) == {"half the batch", _AUTOCAST, _BFLOAT16}


def test_of_half_the_batch_and_autocast_the_unknown_may_be_half_as_large(tmp_path: Path) -> None:
    """As inputs, and what is made outside of a module: nothing tells what they are for."""
    device = built.Device()
    device.alloc(2 * MB, built.APPLY, built.user(3))
    device.alloc(6 * MB, built.user(9))
    saved = device.alloc(4 * MB, built.CALL, built.user(10))
    device.free(saved, built.NODE, built.ENGINE)
    changes = {each.change: each for each in _analysed(tmp_path, device).changes}
    half = changes["half the batch"]
    assert (half.low_bytes, half.high_bytes) == (7 * MB, 10 * MB)
    assert changes[_AUTOCAST].low_bytes == 7 * MB


# --- bfloat16 -------------------------------------------------------------------------------------

_AUTOCAST, _BFLOAT16 = "autocast to bfloat16", "the model in bfloat16"


class _Layer(NamedTuple):
    weight: int
    activation: int
    under_autocast: float
    """Bytes of its activations there by those of float32: products halve, norms stay."""


_SIZES = st.integers(1000, 10**6)
_LAYER = st.builds(_Layer, _SIZES, _SIZES, st.sampled_from((0.5, 0.7, 1.0)))
_LAYERS = st.lists(_LAYER, min_size=1, max_size=6)


def _train(layers: list[_Layer], precision: str, *, adam: bool = True) -> DeviceMemory:
    """Train layers as PyTorch does; under autocast copies of weights live in the graph."""
    device = built.Device()
    half = 0.5 if precision == "bfloat16" else 1.0
    call = (built.CALL, built.user(10))
    for layer in layers:
        device.alloc(int(half * layer.weight), built.APPLY, built.user(3))
    for step in range(2):
        saved = []
        for layer in layers:
            share = layer.under_autocast if precision == "autocast" else half
            size = int(share * layer.activation)
            if precision == "autocast":
                cast = device.alloc(layer.weight // 2, built.CACHED_CAST, *call)
                saved.append((cast, 0))
            device.free(device.alloc(size, *call), *call)
            saved.append((device.alloc(size, *call), size))
        for block, size in reversed(saved):
            if size:
                work = device.alloc(size, built.NODE, built.ENGINE)
                device.free(work, built.NODE, built.ENGINE)
            device.free(block, built.NODE, built.ENGINE)
        gradients = [
            device.alloc(int(half * layer.weight), built.ACCUMULATE, built.ENGINE)
            for layer in layers
        ]
        for layer in layers if adam and not step else ():
            for _ in range(2):
                device.alloc(int(half * layer.weight), built.INIT_GROUP, built.STEP)
        update = device.alloc(int(half * layers[0].weight), built.STEP, built.user(20))
        device.free(update, built.STEP, built.user(20))
        for gradient in gradients:
            device.free(gradient, built.ZERO_GRAD, built.user(21))
    devices = snapshot_device.devices(built.parsed(built.snapshot(device)), None)
    return peaks.highest_first([read.Recorded(Path("x.pickle"), devices)])[0]


@pytest.mark.slow
@settings(max_examples=25)
@given(_LAYERS, st.booleans())
def test_peak_in_16_bits_is_within_the_predicted_interval(
    layers: list[_Layer], adam: bool  # noqa: FBT001 - drawn
) -> None:  # fmt: skip
    found = _train(layers, "float32", adam=adam)
    predicted = {each.change: each for each in found.changes}
    for change, precision in ((_AUTOCAST, "autocast"), (_BFLOAT16, "bfloat16")):
        peak_bytes = _train(layers, precision, adam=adam).peak_bytes
        if change in predicted:  # else it changes the peak by less than 1 %
            low, high = known(predicted[change].low_bytes), known(predicted[change].high_bytes)
            assert low <= predicted[change].peak_bytes <= high
        else:
            low, high = int(0.99 * found.peak_bytes), int(1.01 * found.peak_bytes)
        assert low - 100 <= peak_bytes <= high + 100  # halves of odd sizes


@pytest.mark.slow
@settings(max_examples=25)
@given(_LAYERS)
def test_half_the_batch_of_any_model(layers: list[_Layer]) -> None:
    even = [layer._replace(activation=2 * layer.activation) for layer in layers]
    found = _train(even, "float32")
    predicted = {each.change: each.peak_bytes for each in found.changes}
    peak_bytes = _train(layers, "float32").peak_bytes
    if "half the batch" in predicted:
        assert predicted["half the batch"] == peak_bytes
    else:
        assert peak_bytes > 0.99 * found.peak_bytes


def test_autocast_may_take_more_memory_than_float32() -> None:
    """The copies of weights exceed what activations save."""
    layers = [_Layer(10 * MB, 12 * MB, 0.9)] * 4
    before, after = (_train(layers, precision, adam=False) for precision in ("float32", "autocast"))
    (change,) = (each for each in before.changes if each.change == _AUTOCAST)
    assert before.peak_bytes < after.peak_bytes <= known(change.high_bytes)
    shown = "\n".join(words.report(Memory((before,)), ("category",), 10))
    assert re.search(r"autocast to bfloat16 +\d+ MB to \d+ MB +-\S+ MB to \+\S+ MB", shown)


_KERNEL = ("void at::native::f<c10::BFloat16>(int)", "??", 0)


@pytest.mark.parametrize("frame", [built.CACHED_CAST, built.AUTOCAST_EXIT, _KERNEL])
def test_no_bfloat16_for_models_that_use_16_bits(tmp_path: Path, frame: built.Frame) -> None:
    """One frame of autocast or of a 16-bit kernel is enough."""
    device = _step(fused=True)
    device.free(device.alloc(10, built.user(1)), frame)
    changes = {each.change for each in _analysed(tmp_path, device).changes}
    assert changes == {"half the batch"}


def test_nothing_is_promised_without_evidence(tmp_path: Path) -> None:
    """Memory of unknown purpose is not known to shrink."""
    device = built.Device()
    for _ in range(2):
        device.alloc(MB, built.user(1))
    device.forget(1)
    found = _analysed(tmp_path, device)
    assert (found.changes, found.checkpoints) == ((), ())


def _model(*checkpointed: int, layers: int = 3, steps: int = 2, inside: int = 5) -> built.Device:
    """Train layers that each save what they make inside and what the next one takes."""
    device = built.Device()
    for _ in range(steps):
        saved: list[list[int]] = []
        for number in range(layers):
            saved.append(_forward(device, f"net.{number}", inside))
            if number in checkpointed:
                device.free(saved[-1].pop(0), built.CALL, built.user(9))
        for number in reversed(range(layers)):
            if number in checkpointed:
                saved[number].insert(0, device.alloc(inside * MB, built.NODE, built.ENGINE))
            for address in saved[number]:
                device.free(address, built.NODE, built.ENGINE)
        device.free(device.alloc(1, built.STEP, built.user(20)), built.STEP, built.user(20))
    return device


def _forward(device: built.Device, layer: str, inside: int = 5) -> list[int]:
    """Run a layer's forward pass; return the blocks that it makes inside, and its output."""
    device.range(f"layer:{layer}", begins=True)
    made = [device.alloc(size * MB, built.CALL, built.user(10)) for size in (inside, 2)]
    device.range(f"layer:{layer}", begins=False)
    return made


def _checkpoints(path: Path, *layers: str) -> dict[str, CheckpointedLayer]:
    """Run layers forward and backward; return the predictions of checkpointing them."""
    device = built.Device()
    saved = [block for layer in layers for block in _forward(device, layer)]
    for block in reversed(saved):
        device.free(block, built.NODE, built.ENGINE)
    return {each.layer: each for each in _analysed(path, device).checkpoints}


@pytest.mark.slow
@pytest.mark.parametrize("layer", range(3))
def test_a_checkpointed_layers_peak_is_that_of_its_own_run(tmp_path: Path, layer: int) -> None:
    device = _analysed(tmp_path, _model())
    expected = _analysed(tmp_path, _model(layer)).peak_bytes
    found = {each.layer: each for each in device.checkpoints}
    if expected == device.peak_bytes:
        assert f"net.{layer}" not in found
        return
    assert found[f"net.{layer}"].peak_bytes == expected
    assert found[f"net.{layer}"].held_bytes == 5 * MB
    assert found[f"net.{layer}"].recomputed_ns is None


@pytest.mark.few(3)
@pytest.mark.parametrize("layers", [2, 3, 8])
@pytest.mark.parametrize("inside", [1, 5, 40])
def test_all_blocks_checkpointed_at_once(tmp_path: Path, layers: int, inside: int) -> None:
    device = _analysed(tmp_path, _model(layers=layers, inside=inside))
    expected = _analysed(tmp_path, _model(*range(layers), layers=layers, inside=inside))
    (found,) = (each for each in device.checkpoints if each.layer == "net.*")
    assert (found.peak_bytes, found.block_count) == (expected.peak_bytes, layers)
    assert found.saved_bytes >= max(each.saved_bytes for each in device.checkpoints)
    shown = "\n".join(words.report(Memory((device,)), ("category",), 20))
    assert f"net.* (all {layers})" in shown


def test_nothing_is_said_of_checkpointing_modules_that_torch_numbered(tmp_path: Path) -> None:
    """By name alone `Linear_0` is not known to be inside `Block_0`, whose memory it is."""
    assert _checkpoints(tmp_path, "net.0", "Block_0", "Linear_0").keys() == {"net", "net.0"}


def test_lists_of_blocks_are_checkpointed_together(tmp_path: Path) -> None:
    """An encoder's and a decoder's, each alone and both; one layer is not a list."""
    layers = "encoder.0", "encoder.1.norm", "decoder.0.a.0", "decoder.1", "head.0"
    found = _checkpoints(tmp_path, *layers)
    counts = {name: each.block_count for name, each in found.items() if "*" in name}
    assert counts == {"encoder.*": 2, "decoder.*": 2, "encoder.*, decoder.*": 4}
    assert found["encoder.*, decoder.*"].held_bytes == 20 * MB
