"""A snapshot and a trace of the same run: what went on at each event, and memory beside time."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.allocations import built
from tests.commands import run

_START = 1_700_000_000_000_000


def _range(
    name: str,
    start: int,
    end: int,
    tid: int = 11,
    category: str = "cpu_op",
    **args: Any,  # noqa: ANN401
) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start,
            "dur": end - start, "args": args}  # fmt: skip


def _kernel(
    name: str, start: int, duration: int, number: int, call: int, tid: int = 11
) -> list[dict[str, Any]]:
    launch = _range("cudaLaunchKernel", call, call + 1, tid, "cuda_runtime", correlation=number)
    work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start,
            "dur": duration, "args": {"device": 0, "stream": 7, "correlation": number}}  # fmt: skip
    return [launch, work]


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """Give a snapshot without stacks and a trace: a forward op, a backward node, a step."""
    device = built.Device(time_us=_START)
    saved = device.alloc(1000)  # at 10
    device.alloc(500)  # at 20
    work = device.alloc(300)  # at 30
    device.free(work)  # at 40, 50
    device.free(saved)  # at 60, 70
    shape: dict[str, Any] = {"Input Dims": [[4, 8], [16, 8]], "Input type": ["float", "float"],
             "Sequence number": 1}  # fmt: skip
    back: dict[str, Any] = {"Sequence number": 1, "Fwd thread id": 0}
    events = [
        _range("layer:net.0", 5, 25, category="user_annotation"),
        _range("aten::linear", 6, 24, **shape),
        _range("autograd::engine::evaluate_function: AddmmBackward0", 26, 75, 12,
               **back),
        _range("AddmmBackward0", 27, 74, 12, **back),
        *_kernel("gemm", 100, 40, 1, 8),
        *_kernel("gemm_back", 200, 80, 2, 28, 12),
    ]  # fmt: skip
    trace = tmp_path / "net.pt.trace.json"
    head = {"schemaVersion": 1, "baseTimeNanoseconds": _START * 1000}
    trace.write_text(json.dumps({**head, "traceEvents": events}))
    return built.write(tmp_path / "net.memory.pickle", device), trace


def _asked(*arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    done = run("memory", *arguments, "--json")
    assert done.code == 0, done.stderr
    (device,) = json.loads(done.stdout)["devices"]
    return device  # type: ignore[no-any-return]


def test_a_trace_tells_what_stacks_do_not(recorded: tuple[Path, Path]) -> None:
    """Op, layer, direction, and by these the category."""
    snapshot, trace = recorded
    alone, joined = _asked(snapshot), _asked(snapshot, "--trace", trace)
    assert {group["name"] for group in alone["by"]["op"]} == {None}
    blocks = {block["bytes"]: block for block in joined["largest"]}
    assert blocks[1000]["op"] == "linear"
    assert blocks[1000]["layer"] == "net.0"
    assert blocks[1000]["category"] == "activations"
    assert blocks[300]["direction"] == "backward"
    assert joined["peak_bytes"] == alone["peak_bytes"] == 1800


def test_memory_lies_beside_time(recorded: tuple[Path, Path]) -> None:
    """Each op's allocation beside its time on the GPU; no time is lost."""
    snapshot, trace = recorded
    joined = _asked(snapshot, "--trace", trace)
    timed = {each["name"]: each for each in joined["beside_time"]["op"]}
    assert timed["linear"]["time_ns"] == 40_000
    assert sum(each["time_ns"] for each in timed.values()) == 120_000
    assert timed["linear"]["allocated_bytes"] >= 1500
    layers = {each["name"]: each for each in joined["beside_time"]["layer"]}
    assert layers["net.0"]["time_ns"] == 120_000  # forward and backward


def test_checkpointing_costs_the_forward_pass(recorded: tuple[Path, Path]) -> None:
    """FLOPs and time of the layer's forward rows, in a step."""
    snapshot, trace = recorded
    joined = _asked(snapshot, "--trace", trace)
    layers = {each["layer"]: each for each in joined["checkpoints"]}
    assert layers["net.0"]["saved_bytes"] == 300
    assert layers["net.0"]["recomputed_ns"] == 40_000
    assert layers["net.0"]["recomputed_flops"] == 2 * 4 * 8 * 16


def test_a_trace_of_another_time_is_one_line(recorded: tuple[Path, Path]) -> None:
    """It cannot be of the same run."""
    snapshot, trace = recorded
    text = trace.read_text().replace(str(_START * 1000), str(_START * 1000 + 10**15))
    trace.write_text(text)
    done = run("memory", snapshot, "--trace", trace)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "of different times" in done.stderr
