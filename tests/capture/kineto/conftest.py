"""Fixtures of captures by torch.profiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof import instrument
from pyprof.capture.kineto import torch_profiler
from pyprof.capture.request import Outcome, Request
from pyprof.capture.script import Target
from tests.capture.kineto.captured import Capture


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


@pytest.fixture
def capture(tmp_path: Path) -> Capture:

    def capture_it(text: str, **options: Any) -> Outcome:  # noqa: ANN401 - those of Request
        script = tmp_path / "train.py"
        script.write_text(text)
        return torch_profiler.run(Request(Target(str(script)), str(tmp_path / "net"), **options))

    return capture_it
