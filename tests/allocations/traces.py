"""Traces of torch.profiler with memory events, built in code."""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.allocations import built
from tests.commands import run
from tests.readers import kineto_json
from tests.readers.kineto_json import kernel, launch, op


def event(ts: float, size: int, address: int = 16, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    arguments = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0, **more}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7,
            "tid": 1, "ts": ts, "args": arguments}  # fmt: skip


def written(path: Path, events: list[dict[str, Any]], **how: Any) -> Path:  # noqa: ANN401
    text = json.dumps({"schemaVersion": 1, "traceEvents": events, **how.pop("head", {})}, **how)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


START_US = 1_700_000_000_000_000


def recorded(folder: Path) -> tuple[Path, Path]:
    """Write a snapshot without stacks and a trace: a forward op, a backward node, a step."""
    device = built.Device(time_us=START_US)
    saved = device.alloc(1000)  # at 10
    device.alloc(500)  # at 20
    work = device.alloc(300)  # at 30
    device.free(work)  # at 40, 50
    device.free(saved)  # at 60, 70
    shape: dict[str, Any] = {"Input Dims": [[4, 8], [16, 8]], "Input type": ["float", "float"],
             "Sequence number": 1}  # fmt: skip
    back: dict[str, Any] = {"Sequence number": 1, "Fwd thread id": 0}
    events = [
        kineto_json.event("user_annotation", "layer:net.0", 5, 20),
        op("aten::linear", 6, 18, **shape),
        op("autograd::engine::evaluate_function: AddmmBackward0", 26, 49, tid=12, **back),
        op("AddmmBackward0", 27, 47, tid=12, **back),
        launch(1, 8),
        kernel(1, 100, 40, name="gemm"),
        launch(2, 28, tid=12),
        kernel(2, 200, 80, name="gemm_back"),
    ]
    trace = folder / "net.pt.trace.json"
    written(trace, events, head={"baseTimeNanoseconds": START_US * 1000})
    return built.write(folder / "net.memory.pickle", device), trace


def asked(*arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    (device,) = run("memory", *arguments, "--json").json["devices"]
    return device  # type: ignore[no-any-return]


def timed_trace(path: Path, *memory: tuple[int, int]) -> Path:
    """Write a trace of two kernels, from 10 us to 140 us, and memory events: (time, bytes)."""
    events = [op("aten::mul", 1, 130)]
    events += [launch(0, 5), kernel(0, 10, 10, name="scale")]
    events += [launch(1, 95), kernel(1, 100, 40, name="scale")]
    events += [event(ts, size, 64 * abs(size)) for ts, size in memory]
    return written(path, events, head={"baseTimeNanoseconds": START_US * 1000, "profile_memory": 1})
