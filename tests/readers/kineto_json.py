"""Traces of torch.profiler as literals: one event per call, in each generation's names."""

import gzip
import json
from pathlib import Path
from typing import Any

from pyprof import schema
from pyprof.readers import kineto
from tests.texts import texts as texts_of

Event = dict[str, Any]


def event(
    cat: str, name: str, ts: float, dur: float, *, tid: object = 1, pid: object = 7, **args: object
) -> Event:
    named = {key.replace("_", " ") if key[0].isupper() else key: v for key, v in args.items()}
    where = {"pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {"ph": "X", "cat": cat, "name": name, **where, "args": named}


def op(name: str, ts: float, dur: float, *, tid: object = 1, **args: object) -> Event:
    """Write an op as torch 1.13 and later do."""
    return event("cpu_op", name, ts, dur, tid=tid, **args)


def launch(corr: int, ts: float, *, tid: object = 1, name: str = "cudaLaunchKernel") -> Event:
    return event("cuda_runtime", name, ts, 1, tid=tid, correlation=corr, cbid=211)


def kernel(corr: int, ts: float, dur: float = 5, *, name: str = "gemm") -> Event:
    """Write a kernel on stream 7 of device 0."""
    where = {"pid": 0, "tid": 7, "device": 0, "stream": 7, "correlation": corr}
    shape = {"grid": [4, 2, 1], "block": [128, 1, 1], "registers per thread": 32}
    return event("kernel", name, ts, dur, **where, **shape, **{"shared memory": 2048})


def text(events: list[Event], **header: object) -> str:
    return json.dumps({"schemaVersion": 1, **header, "traceEvents": events})


def trace_file(folder: Path, events: list[Event], **header: object) -> Path:
    path = folder / "trace.json"
    path.write_text(text(events, **header))
    return path


def read(folder: Path, events: list[Event], **header: object) -> schema.Capture:
    return read_text(folder, text(events, **header))


def read_text(folder: Path, written: str | bytes, *, zipped: bool = False) -> schema.Capture:
    path = folder / "trace.json"
    raw = written.encode() if isinstance(written, str) else written
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    capture = kineto.read(path)
    schema.check(capture)
    return capture


def texts(capture: schema.Capture) -> list[str]:
    return texts_of(capture.ranges)
