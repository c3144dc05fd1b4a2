"""A captured training step has the FLOPs of torch's own counter."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")

import pyprof
from pyprof.capture.kineto import torch_profiler
from pyprof.capture.request import Request
from pyprof.capture.script import Target
from tests.known import known

LENET = """
model = nn.Sequential(
    nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10),
)
x, y = torch.randn(4, 1, 32, 32), torch.randint(0, 10, (4,))
def step():
    F.cross_entropy(model(x), y).backward()
"""

TRANSFORMER = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        weights = (q @ k.transpose(1, 2) / 32**0.5).softmax(-1)
        x = x + self.out(weights @ v)
        return x + self.mlp(x)
model, x = nn.Sequential(Block(), Block()), torch.randn(2, 8, 32)
def step():
    model(x).square().mean().backward()
"""

RESIDUAL = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
    def forward(self, x):
        return torch.relu(x + self.norm(self.b(torch.relu(self.a(x)))))
model, x = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), Block()), torch.randn(2, 3, 15, 15)
def step():
    model(x).sum().backward()
"""

SUMS = {"aten::add", "aten::add_", "aten::sum"}
"""Sums of gradients belong to the op, too, but torch's counter leaves them out."""

HEAD = "import torch, torch.nn as nn, torch.nn.functional as F\n"
COUNTED = {"conv2d", "linear", "matmul", "bmm", "mm", "addmm", "__matmul__"}
"""What torch's counter counts, by the names that PyProf gives it."""


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("text", [LENET, TRANSFORMER, RESIDUAL], ids=["lenet", "attention", "conv"])
def test_flops_of_a_captured_step_equal_the_counters(tmp_path: Path, text: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{HEAD}{text}\nimport pyprof\nwith pyprof.profile():\n    step()\n")
    outcome = torch_profiler.run(Request(Target(str(script)), str(tmp_path / "net")))
    assert outcome.code == 0
    rows = pyprof.load(known(outcome.path))
    counted = rows[rows["op"].isin(COUNTED) & ~rows["kernel"].isin(SUMS)]
    scope: dict[str, object] = {}
    exec(HEAD + text, scope)  # noqa: S102 - the same text
    with flop_counter.FlopCounterMode(display=False) as counter:
        scope["step"]()  # type: ignore[operator]
    assert counted["flops"].sum() == counter.get_total_flops()
    assert set(counted["dir"]) == {"fprop", "bprop"}
    assert counted["line"].str.contains("train.py", na=False).all()
    assert (counted["layer"].fillna("") != "").all()
    assert counted["sizes"].notna().all()
