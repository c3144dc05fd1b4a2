"""Memory beside time."""

from pathlib import Path

import pytest

from pyprof.analysis.memory.memory_time import LayerWork
from pyprof.inputs.source import Source
from pyprof.marker import Tensor
from tests.allocations import traces
from tests.analysis.captures import US, Range, Work, capture, layer, op, table


def test_each_op_has_its_memory_and_its_gpu_time(tmp_path: Path) -> None:
    """Checkpointing a layer costs the FLOPs and time of its forward rows in a step."""
    snapshot, trace = traces.recorded(tmp_path)
    joined = traces.asked(snapshot, "--trace", trace)
    timed = {each["name"]: each for each in joined["beside_time"]["op"]}
    assert timed["linear"]["time_ns"] == 40_000
    assert sum(each["time_ns"] for each in timed.values()) == 120_000
    assert timed["linear"]["allocated_bytes"] >= 1500
    layers = {each["name"]: each for each in joined["beside_time"]["layer"]}
    assert layers["net.0"]["time_ns"] == 120_000  # forward and backward
    (checkpoint,) = (each for each in joined["checkpoints"] if each["layer"] == "net.0")
    assert (checkpoint["saved_bytes"], checkpoint["recomputed_ns"]) == (300, 40_000)
    assert checkpoint["recomputed_flops"] == 2 * 4 * 8 * 16


def test_an_evaluation_beside_the_steps_is_not_work_of_a_step() -> None:
    """The layer runs once in each of two steps, and three times after them."""
    work, ranges = [], []
    for call in range(5):
        at = call * 100 * US
        work.append(Work((at + 20 * US, at + 60 * US), (at + 10 * US, at + 12 * US)))
        inputs = Tensor((8, 16), "float32"), Tensor((16, 4), "float32")
        ranges += [layer("net.0", (at, at + 20 * US)), op("mm", (at + US, at + 15 * US), *inputs)]
        ranges += [Range(f"step {call}", (at, at + 90 * US))] * (call < 2)
    net = capture(work, ranges=ranges)
    found = LayerWork(Source(table(net), net)).forward("net.0")
    assert found == pytest.approx((2 * 8 * 16 * 4, 40 * US))
