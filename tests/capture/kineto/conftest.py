"""Fixtures of captures by torch.profiler."""

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from pyprof import instrument


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Everything that was replaced for the script is put back."""
    names = (torch.cuda.profiler.start, torch.cuda.profiler.stop, torch.autograd.profiler.emit_nvtx)
    relu = torch.relu
    yield
    after = (torch.cuda.profiler.start, torch.cuda.profiler.stop, torch.autograd.profiler.emit_nvtx)
    assert after == names
    assert torch.relu is relu
    assert not instrument.enabled()
