"""During a CUDA graph's capture ranges are as usual, and nothing invalidates it.

Without a GPU, torch is made to say that it captures; ops run on the CPU.
"""

from contextlib import ExitStack
from typing import Any

import pytest
import torch
from torch import nn

import pyprof
from pyprof.capture.kineto.recording import count_steps
from pyprof.instrument import step_end
from tests.instrument.conftest import Recorder

FORBIDDEN = (
    *("synchronize", "Event", "Stream", "current_stream", "memory_allocated", "empty_cache"),
    *("cudart", "caching_allocator_alloc", "mem_get_info", "set_stream"),
)
"""What may wait for the GPU, ask it, allocate or change streams."""


@pytest.fixture
def capturing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have torch say that the stream is captured, and fail where the stream would be disturbed."""
    cuda: Any = torch.cuda

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the capture of a graph would end here")

    monkeypatch.setattr(cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(cuda, "is_current_stream_capturing", lambda: True)
    for name in FORBIDDEN:
        monkeypatch.setattr(cuda, name, forbidden)


def train(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    with pyprof.annotate("forward", timer=True):
        loss = model(torch.ones(4, 8)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    pyprof.step()


def test_ranges_are_those_of_an_eager_run(
    recorder: Recorder, request: pytest.FixtureRequest
) -> None:
    pyprof.init()
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train(model, optimizer)
    recorder.clear()
    train(model, optimizer)
    eager = list(recorder.pushed)
    recorder.clear()
    request.getfixturevalue("capturing")
    train(model, optimizer)
    assert recorder.pushed == eager


@pytest.mark.parametrize("captured", [True, False], ids=["captured", "replayed"])
def test_only_a_captured_step_is_not_counted(
    *, captured: bool, request: pytest.FixtureRequest
) -> None:
    """Neither the optimizer's nor the script's: the profiler would wait for the GPU."""
    if captured:
        request.getfixturevalue("capturing")
    model = nn.Linear(8, 8)
    heard: list[str] = []
    with count_steps(lambda: heard.append("step")), ExitStack() as stack:
        stack.callback(step_end.add(lambda: heard.append("told")))
        train(model, torch.optim.SGD(model.parameters(), 0.1))
        pyprof.step()
    assert heard == ([] if captured else ["step", "told"] * 2)
