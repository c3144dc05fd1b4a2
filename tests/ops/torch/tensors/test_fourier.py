"""Formulas of `fourier`, by their worked examples and foreign arguments; frames against torch."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.fourier")


@pytest.mark.parametrize("hop", [None, 7, 16])
def test_frames_are_those_of_torch(hop: int | None) -> None:
    """Each has the same FLOPs; by default they are a quarter of their length apart."""
    torch = pytest.importorskip("torch")
    result = torch.stft(torch.ones(200), 64, hop, window=torch.ones(64), return_complex=True)
    one, *several = (
        ops.cost(Call("torch", "stft", (f32(length), 64, apart, 64, f32(64), False))).flops
        for length, apart in ((64, 64), (200 + 64, hop))
    )
    assert one is not None
    assert several == [result.shape[-1] * one]
    padded = ops.cost(Call("torch", "stft", (f32(200), 64, hop), {"window": f32(64)}))
    assert padded.flops == several[0]


def test_dimensions_counted_from_the_end_are_the_same() -> None:
    """The last that is named is halved."""
    first, last = (
        ops.cost(Call("torch.fft", "rfft2", (f32(4, 6, 2),), {"dim": dims}))
        for dims in ((1, 0), (-2, -3))
    )
    assert first.bytes == 4 * 48 + 8 * (3 * 6 * 2)
    assert last == first


def test_the_function_that_a_module_replaced_took_other_arguments() -> None:
    """`torch.fft(input, signal_ndim)`: 1 is no length, and the last dimension holds two parts."""
    old, new = (ops.cost(Call(mod, "fft", (f32(4, 8, 2), 1))) for mod in ("torch", "torch.fft"))
    assert (old.flops, old.reason) == (None, "an interface of torch 1.7 and earlier")
    assert new.flops == 0
