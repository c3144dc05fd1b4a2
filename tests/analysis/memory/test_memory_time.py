"""Memory beside time."""

from pathlib import Path

from tests.allocations import traces


def test_each_op_has_its_memory_and_its_gpu_time(tmp_path: Path) -> None:
    snapshot, trace = traces.recorded(tmp_path)
    joined = traces.asked(snapshot, "--trace", trace)
    timed = {each["name"]: each for each in joined["beside_time"]["op"]}
    assert timed["linear"]["time_ns"] == 40_000
    assert sum(each["time_ns"] for each in timed.values()) == 120_000
    assert timed["linear"]["allocated_bytes"] >= 1500
    layers = {each["name"]: each for each in joined["beside_time"]["layer"]}
    assert layers["net.0"]["time_ns"] == 120_000  # forward and backward


def test_checkpointing_costs_the_forward_pass(tmp_path: Path) -> None:
    """FLOPs and time of the layer's forward rows in a step."""
    snapshot, trace = traces.recorded(tmp_path)
    joined = traces.asked(snapshot, "--trace", trace)
    layers = {each["layer"]: each for each in joined["checkpoints"]}
    assert layers["net.0"]["saved_bytes"] == 300
    assert layers["net.0"]["recomputed_ns"] == 40_000
    assert layers["net.0"]["recomputed_flops"] == 2 * 4 * 8 * 16
