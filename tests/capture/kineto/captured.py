"""Shared by tests of captures by torch.profiler: a training script, and what a trace holds."""

from itertools import chain, repeat

import pytest

from pyprof import marker
from pyprof.capture.kineto import memory_guard
from pyprof.capture.request import Outcome
from pyprof.readers import kineto
from tests.known import known
from tests.texts import texts as texts_of

TRAIN = """
import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    loss = model(torch.ones(4 + step, 3)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

WINDOWS = """
import pyprof, torch
with pyprof.profile():
    torch.ones(3).tanh()
torch.ones(3).exp()
with pyprof.profile():
    torch.ones(3).sin()
"""
WAIT_FOR_THE_GUARD = """
import sys, time, torch
torch.ones(3).tanh()
begun = time.monotonic()
while torch.autograd.profiler._is_profiler_enabled:
    if time.monotonic() - begun > 60:
        sys.exit("still recording")
"""


def grow_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the process seem to exhaust memory as soon as it is watched."""
    used = chain([0], repeat(1 << 60))
    defaults = {"measure": lambda: next(used), "interval_s": 0.01}
    monkeypatch.setattr(memory_guard.MemoryGuard.__init__, "__kwdefaults__", defaults)


def texts(outcome: Outcome) -> list[str]:
    return texts_of(kineto.read(known(outcome.path)).ranges)


def ran(outcome: Outcome) -> set[str]:
    """Return which of the ops that scripts here call one by one are in a capture."""
    names = {marker.decode_seq(text).name.removeprefix("aten::") for text in texts(outcome)}
    return names & {"cos", "exp", "sin", "tanh"}


def rows(found: list[str], name: str) -> list[int]:
    """Return the rows of the first argument in each op of a name."""
    calls = [marker.decode_seq(text) for text in found]
    return [
        given.shape[0]
        for call in calls
        if call.name == name and call.call
        for given in call.call.args[1:2]
        if isinstance(given, marker.Tensor)
    ]
