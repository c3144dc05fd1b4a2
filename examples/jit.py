"""TorchScript: functions and modules, scripted and traced, before `init()` and after it.

Ops inside a compiled function are marked only by torch's own
ranges. The call of a scripted module is a layer; `annotate` gives a function a name.
"""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn

import pyprof


def gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Gate one tensor by another."""
    return F.relu(x) * torch.sigmoid(y) + F.dropout(y, 0.0)


class Net(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply both layers."""
        return self.second(F.relu(self.first(x)))


def main() -> None:
    """Compile all of them, half before init and half after it, and compare with Python."""
    warnings.simplefilter("ignore")  # torch says that TorchScript is old
    x, y = torch.rand(4, 8), torch.rand(4, 8)
    net = Net()
    scripted_function, traced_module = torch.jit.script(gate), torch.jit.trace(net, x)
    pyprof.init()
    traced_function, scripted_module = torch.jit.trace(gate, (x, y)), torch.jit.script(net)

    with pyprof.profile():
        with pyprof.annotate("gate"):
            gated = [scripted_function(x, y), traced_function(x, y)]
        passed = [scripted_module(x), traced_module(x)]
    same = all(torch.equal(result, gate(x, y)) for result in gated)
    print("same as in Python:", same and all(torch.equal(result, net(x)) for result in passed))


if __name__ == "__main__":
    main()
