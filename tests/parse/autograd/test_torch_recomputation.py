"""Checkpointing and compiling as recorded by torch.profiler: the same work as without."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyprof.frame import load

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.slow


def _net() -> Any:  # noqa: ANN401 - a module
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True),
        torch.nn.Conv2d(4, 4, 1), torch.nn.ReLU(inplace=True),
    )  # fmt: skip


def _rows(path: Path, step: Callable[[], Any]) -> Any:  # noqa: ANN401 - a frame
    """Profile one backward pass over a step's result."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as profile:
        step().sum().backward()
    profile.export_chrome_trace(str(path))
    return load(str(path))


def test_both_kinds_of_checkpointing_recompute_the_same(tmp_path: Path) -> None:
    net, x = _net(), torch.randn(2, 3, 8, 8, requires_grad=True)
    forward = _rows(tmp_path / "plain.json", lambda: net(x))
    forward = forward[forward.dir == "fprop"].iloc[:-2]  # without sum and ones_like
    frames = {
        kind: _rows(
            tmp_path / f"{kind}.json",
            partial(torch.utils.checkpoint.checkpoint, net, x, use_reentrant=kind),
        )
        for kind in (False, True)
    }
    columns = ["dir", "op", "kernel", "flops"]
    assert sorted(map(tuple, frames[False][columns].to_numpy())) == sorted(
        map(tuple, frames[True][columns].to_numpy())
    )
    backward = frames[True][frames[True].dir == "bprop"]
    again = backward[columns[1:]].iloc[: len(forward)]
    assert again.to_numpy().tolist() == forward[columns[1:]].to_numpy().tolist()


def test_a_compiled_net_has_the_products_of_the_net(tmp_path: Path) -> None:
    """Tracing it, in the same recording, adds none."""
    net, x = torch.nn.Linear(16, 8), torch.randn(4, 16)
    plain = _rows(tmp_path / "plain.json", lambda: net(x))
    torch._dynamo.reset()
    compiled = torch.compile(net, backend="aot_eager")
    traced = _rows(tmp_path / "compiled.json", lambda: compiled(x))
    products = [frame[frame.kernel.str.contains("mm")].flops.sum() for frame in (plain, traced)]
    assert products[0] == products[1] > 0
    assert not traced.kernel.str.contains("Dispatch|prims").any()
