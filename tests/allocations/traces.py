"""Traces of torch.profiler with memory events, built in code."""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.allocations import built
from tests.commands import run


def event(ts: float, size: int, address: int = 16, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    arguments = {"Addr": address, "Bytes": size, "Device Type": 1, "Device Id": 0, **more}
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1,
            "tid": 11, "ts": ts, "args": arguments}  # fmt: skip


def op(name: str, ts: float, dur: float) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 11, "ts": ts, "dur": dur,
            "args": {}}  # fmt: skip


def written(path: Path, events: list[dict[str, Any]], **how: Any) -> Path:  # noqa: ANN401
    text = json.dumps({"schemaVersion": 1, "traceEvents": events, **how.pop("head", {})}, **how)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


START_US = 1_700_000_000_000_000


def _range(
    name: str,
    start: int,
    end: int,
    tid: int = 11,
    category: str = "cpu_op",
    **args: Any,  # noqa: ANN401
) -> dict[str, Any]:
    ranged = op(name, start, end - start) | {"tid": tid, "cat": category}
    return ranged | {"args": args}


def _kernel(
    name: str, start: int, duration: int, number: int, call: int, tid: int = 11
) -> list[dict[str, Any]]:
    launch = _range("cudaLaunchKernel", call, call + 1, tid, "cuda_runtime", correlation=number)
    work = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start,
            "dur": duration, "args": {"device": 0, "stream": 7, "correlation": number}}  # fmt: skip
    return [launch, work]


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
        _range("layer:net.0", 5, 25, category="user_annotation"),
        _range("aten::linear", 6, 24, **shape),
        _range("autograd::engine::evaluate_function: AddmmBackward0", 26, 75, 12,
               **back),
        _range("AddmmBackward0", 27, 74, 12, **back),
        *_kernel("gemm", 100, 40, 1, 8),
        *_kernel("gemm_back", 200, 80, 2, 28, 12),
    ]  # fmt: skip
    trace = folder / "net.pt.trace.json"
    written(trace, events, head={"baseTimeNanoseconds": START_US * 1000})
    return built.write(folder / "net.memory.pickle", device), trace


def asked(*arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    (device,) = run("memory", *arguments, "--json").json["devices"]
    return device  # type: ignore[no-any-return]


def timed_trace(path: Path, *memory: tuple[int, int]) -> Path:
    """Write a trace of two kernels, from 10 us to 140 us, and memory events: (time, bytes)."""
    events = [op("aten::mul", 1, 130), *_kernel("scale", 10, 10, 0, 5),
              *_kernel("scale", 100, 40, 1, 95)]  # fmt: skip
    events += [event(ts, size, 64 * abs(size)) for ts, size in memory]
    return written(path, events, head={"baseTimeNanoseconds": START_US * 1000, "profile_memory": 1})
