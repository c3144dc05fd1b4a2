"""A small training capture whose ops, layers, lines and times are known."""

from dataclasses import replace
from pathlib import Path

from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from tests.builders import Range, Work, nsys_db
from tests.capture_files.model import Value, global_id
from tests.capture_files.nsys import NSYS_2024

HOSTILE = "k<</script><img src=x onerror=alert(1)>|`*>"
"""A kernel's name that a page or a table could mistake for its own text."""


def op(name: str, *shape: int, dtype: str = "float32", mod: str = "torch") -> str:
    return encode_op(Call(mod, name, (Tensor(shape, dtype),)))


STEP_NS = 10_000

TWO_WINDOWS = (
    Work(at=(1000, 1250), call=(900, 910)),
    Work(kind="none", api="cudaProfilerStop_v4000", call=(1290, 1300)),
    Work(kind="none", api="cudaProfilerStart_v4000", call=(9000, 9010)),
    Work(at=(9100, 9500), call=(9020, 9030)),
)
"""A kernel in each of two windows of the profiler, which pauses between them."""


def capture(
    path: Path, *, slower: float = 1, hostile: str = HOSTILE, steps: int = 0, clock_ns: int = 0
) -> Path:
    """Write two layers' kernels on one stream, a copy on another, and one kernel of nobody.

    `slower` multiplies the duration of the first layer's op; `steps` repeats it all, each time in
    a range that names the step; `clock_ns` is what the clock shows more.
    """
    work, ranges = [], []
    for step in range(max(steps, 1)):
        at = clock_ns + step * STEP_NS
        work += _work(slower, hostile, at)
        ranges += _ranges(at)
        ranges += [Range(f"step {step}", (at, at + STEP_NS - 1))] * bool(steps)
    return nsys_db(path, work, ranges, WITH_MEMORY)


_ALLOCATION: dict[str, Value] = {
    "start": 111, "globalPid": global_id(1), "deviceId": 0, "address": 4096, "bytes": 1 << 20,
    "memKind": 2, "memoryOperationType": 0, "correlationId": 1,
}  # fmt: skip
WITH_MEMORY = replace(
    NSYS_2024, more={**NSYS_2024.more, "CUDA_GPU_MEMORY_USAGE_EVENTS": [_ALLOCATION]}
)
"""With memory, which every command but one ignores."""


def _work(slower: float, hostile: str, at: int) -> list[Work]:
    relu = int(100 * slower)
    found = [
        ("relu_kernel", (1000, 1000 + relu), (110, 120)),
        ("relu_kernel", (2000, 2000 + relu), (130, 140)),
        ("exp_kernel", (3000, 3300), (310, 320)),
        (hostile, (3400, 3450), (910, 920)),
    ]
    copy = Work("copy", (at + 1050, at + 1250), (at + 510, at + 520), kind="memcpy", stream=8,
                api="cudaMemcpyAsync_v3020")  # fmt: skip
    return [Work(name, (at + a, at + b), (at + c, at + d)) for name, (a, b), (c, d) in found] + [
        copy
    ]


def _ranges(at: int) -> list[Range]:
    found = [
        (encode_layer("net"), 100, 400),
        (encode_layer("net.first"), 101, 200),
        (encode_trace(("/home/me/train.py:7", "/home/me/model.py:12")), 102, 150),
        (op("relu", 16, 8), 103, 125),
        (op("relu", 16, 8), 126, 149),
        (encode_layer("net.second"), 300, 390),
        (encode_trace(("/home/me/train.py:7", "/home/me/model.py:30")), 302, 350),
        (op("exp", 16, 8), 303, 330),
    ]
    return [Range(text, (at + start, at + end)) for text, start, end in found]
