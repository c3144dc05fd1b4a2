"""The minimum: import, `init()`, and a range to capture."""

from __future__ import annotations

import torch

import pyprof

pyprof.init()

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.rand(32, 3, 32, 32, device=device)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten()).to(device)
optimizer = torch.optim.Adam(net.parameters())

with pyprof.profile():
    net(x).sum().backward()
    optimizer.step()
print("done")
