"""Traces of torch_npu as literals: ops, CANN calls, NPU work, and arrows."""

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]
PYTHON, CANN, HARDWARE, OVERLAP, COMMUNICATION = 4321, 2_159_071, 2_159_136, 2_159_200, 2_159_232
BASE_US = 1_701_237_562_370_155
OP_THREAD, QUEUE_THREAD, STREAM = 77, 78, 2
NAMES = {
    PYTHON: ("Python", "CPU"),
    CANN: ("CANN", "CPU"),
    HARDWARE: ("Ascend Hardware", "NPU"),
    OVERLAP: ("Overlap Analysis", "NPU"),
    COMMUNICATION: ("Communication", "NPU"),
}


def us(after: float) -> str:
    """Write a time as torch_npu does: more digits than a float has."""
    ns = BASE_US * 1000 + round(after * 1000)
    return f"{ns // 1000}.{ns % 1000:03d}"


def x(pid: int, tid: int, name: str, at: float, dur: float, **args: object) -> Event:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(at), "dur": dur, "args": args}


def call(step: int, *, queued: bool, arrow: bool) -> list[Event]:
    """Write an op, its call of CANN and its work, which other tracks show again."""
    at = 1000 * step
    shapes = {"Input Dims": "8,16;32,16;32", "Input type": "c10::Half;c10::Half;c10::Half"}
    stack = "/a/train.py(12): main;\r\n/a/train.py(30): <module>"
    linear = x(PYTHON, OP_THREAD, "aten::linear", at, 100, **shapes,
               **{"Sequence number": step, "Fwd thread id": 0, "Call stack": stack})  # fmt: skip
    caller, called = (QUEUE_THREAD, at + 300) if queued else (OP_THREAD, at + 20)
    events = [
        {**linear, "cat": "cpu_op"},
        x(CANN, caller, "AscendCL@aclnnMatmul", called, 20, connection_id=100 + step),
        x(HARDWARE, STREAM, "MatMulV2", at + 400, 55.25, connection_id=100 + step),
        x(OVERLAP, 0, "Computing", at + 400, 55.25),
        x(COMMUNICATION, 0, "hcom_allReduce_", at + 400, 55.25),
    ]
    if arrow:
        ends = (("s", PYTHON, OP_THREAD, at), ("f", HARDWARE, STREAM, at + 400))
        events += [{"ph": phase, "bp": "e", "name": "torch_to_npu", "id": us(at + 400), "pid": pid,
                    "tid": tid, "ts": us(when), "cat": "async_npu"}
                   for phase, pid, tid, when in ends]  # fmt: skip
    return events


def write(path: Path, events: list[Event]) -> Path:
    described = [
        {"ph": "M", "name": key, "pid": pid, "tid": 0, "args": {field: value}}
        for pid, (name, labels) in NAMES.items()
        for key, field, value in (
            ("process_name", "name", name),
            ("process_labels", "labels", labels),
        )
    ]
    path.write_text(json.dumps([*described, *events]))
    return path
