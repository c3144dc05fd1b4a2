"""What tests of captures by torch.profiler share: a training script, and what a trace holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyprof import marker
from pyprof.capture.request import Outcome
from pyprof.readers import kineto
from tests.texts import texts as texts_of

Capture: TypeAlias = Callable[..., Outcome]

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


def texts(outcome: Outcome) -> list[str]:
    assert outcome.path is not None
    return texts_of(kineto.read(outcome.path).ranges)


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
