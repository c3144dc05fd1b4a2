"""Devices of a file, whatever tool wrote it."""

import pickle
from pathlib import Path

import pytest

from pyprof.allocations import read
from tests.allocations import built, traces
from tests.commands import printed, refused, run
from tests.conftest import CAPTURES
from tests.readers.kineto_json import op

REAL = sorted((CAPTURES / "memory-torch-snapshots").glob("*.pickle"))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_totals_of_real_snapshots_are_those_of_torch(path: Path) -> None:
    """What torch's own memory_viz says is allocated and reserved at the end."""
    viz = pytest.importorskip("torch.cuda._memory_viz")
    taken = pickle.loads(path.read_bytes())  # noqa: S301 - of trusted files
    (device,) = read.read(path).devices
    history = device.history
    assert history.held(len(history.time_ns) - 1) == sum(
        viz._block_extra(block)[1]
        for segment in taken["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    )
    if path.stem != "training_ddp":  # blocks of that file do not fill its segments
        summary = viz.segsum(taken)
        assert device.end_allocated_bytes == sum(map(viz.calc_active, taken["segments"]))
        assert f"total_allocated: {viz.Bytes(history.held(len(history.time_ns) - 1))}\n" in summary
        assert f"total_reserved: {viz.Bytes(history.reserved_end)}\n" in summary


@pytest.mark.parametrize("free", [0, 1 << 40, -7, 1 << 62])
def test_an_impossible_request_is_an_out_of_memory(tmp_path: Path, free: int) -> None:
    """A program can ask for 2^62 bytes; what a device has free is bounded."""
    device = built.training()
    device.oom(1 << 62, free)
    path = built.write(tmp_path / "x.pickle", device)
    if not 0 <= free <= 1 << 40:
        refused("memory", path)
        return
    assert "asked for" in printed("memory", path)


def test_memory_without_ops_is_shown(tmp_path: Path) -> None:
    path = traces.written(tmp_path / "x.json", [op("aten::view", 1, 8), traces.event(2, 100)])
    assert "Peak: 100 B" in run("memory", path).stdout
    path.write_bytes(path.read_bytes()[:-2])
    assert "the trace is truncated" in run("memory", path).stdout


def test_a_trace_without_memory_is_refused(tmp_path: Path) -> None:
    said = refused("memory", traces.written(tmp_path / "x.json", [op("aten::add", 1, 8)]))
    assert "profile_memory=True" in said
