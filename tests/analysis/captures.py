"""Captures as `schema.Capture`, written as the activity of host and GPU."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from pyprof import schema
from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records import dict_lines
from pyprof.records.records import Records
from tests.texts import apart

Bounds = tuple[int, int]

GEMM = "volta_sgemm_128x64_nn"
SGEMM_A100 = "ampere_sgemm_128x64_tn"
ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3>)"
)
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

A100 = {
    "name": "NVIDIA A100-SXM4-40GB",
    "sm_count": 108,
    "clock_hz": 1_410_000_000,
    "bandwidth": 1_555_200_000_000,
    "cc_major": 8,
    "cc_minor": 0,
}


@dataclass(frozen=True)
class Work:
    """A piece of GPU work at `at`, launched by a call at `call`; None: the call is not known."""

    at: Bounds
    call: Bounds | None = None
    name: str = GEMM
    kind: int = schema.KERNEL
    device: int = 0
    stream: int = 7
    bytes: int | None = None
    grid: tuple[int, int, int] | None = (256, 1, 1)
    api: str = "cudaLaunchKernel"
    pid: int = 1
    regs: int | None = None
    smem: int | None = None
    """Bytes of a block."""
    counters: str | None = None
    """As `schema.COUNTERS`, JSON."""
    collective: str | None = None
    """As `schema.COLLECTIVE`, JSON."""


@dataclass(frozen=True)
class Range:
    text: str
    at: Bounds
    thread: int = 0


@dataclass(frozen=True)
class Api:
    name: str
    at: Bounds


def capture(
    work: Sequence[Work], api: Sequence[Api] = (), ranges: Sequence[Range] = (), pids: int = 1
) -> schema.Capture:
    """Write a capture of one A100 (of each number), the launches of a process on one thread."""
    threads = max(pids, *(r.thread + 1 for r in ranges), 1)
    devices = sorted({w.device for w in work})
    return schema.Capture(
        tool="nsys",
        version=None,
        activities=schema.table(schema.ACTIVITIES, _activities(work)),
        calls=_calls(work, api),
        ranges=schema.table(
            schema.RANGES,
            {
                "start": [r.at[0] for r in ranges],
                "end": [r.at[1] for r in ranges],
                "thread": [r.thread for r in ranges],
                "style": [schema.NESTED] * len(ranges),
                **apart([r.text for r in ranges]),
            },
        ),
        threads=schema.table(
            schema.THREADS,
            {"pid": list(range(1, threads + 1)), "tid": list(range(11, 11 + threads))},
        ),
        devices=schema.table(
            schema.DEVICES,
            {"device": devices, **{key: [value] * len(devices) for key, value in A100.items()}},
        ),
    )


def _calls(work: Sequence[Work], api: Sequence[Api]) -> pa.Table:
    launched = [(row, w) for row, w in enumerate(work) if w.call is not None]
    calls: list[tuple[Bounds, str, int | None, int]] = [
        (w.call or (0, 0), w.api, row, w.pid) for row, w in launched
    ]
    calls += [(call.at, call.name, None, 1) for call in api]
    return schema.table(
        schema.CALLS,
        {
            "start": [at[0] for at, *_ in calls],
            "end": [at[1] for at, *_ in calls],
            "thread": [pid - 1 for *_, pid in calls],
            "corr": [corr for _, _, corr, _ in calls],
            "name": [name for _, name, _, _ in calls],
        },
    )


def _activities(work: Sequence[Work]) -> dict[str, list[object]]:
    grids = [w.grid or (None, None, None) for w in work]
    blocks = [(128, 1, 1) if w.grid else (None, None, None) for w in work]
    return {
        "kind": [w.kind for w in work],
        "start": [w.at[0] for w in work],
        "end": [w.at[1] for w in work],
        "pid": [w.pid for w in work],
        "device": [w.device for w in work],
        "stream": [w.stream for w in work],
        "corr": [row if w.call is not None else None for row, w in enumerate(work)],
        "name": [w.name for w in work],
        "bytes": [w.bytes for w in work],
        **{
            name: [getattr(w, name) for w in work]
            for name in ("regs", "smem", "counters", "collective")
        },
        **{f"grid_{axis}": [g[place] for g in grids] for place, axis in enumerate("xyz")},
        **{f"block_{axis}": [b[place] for b in blocks] for place, axis in enumerate("xyz")},
    }


def moved(work: Work, by: int, pid: int = 1) -> Work:
    """Move work and its call to a later time."""
    call = work.call and (work.call[0] + by, work.call[1] + by)
    return replace(work, at=(work.at[0] + by, work.at[1] + by), call=call, pid=pid)


def copy(at: Bounds, call: Bounds | None, size: int = 1 << 20, way: str = "HtoD") -> Work:
    return Work(at, call, f"[CUDA memcpy {way}]", schema.MEMCPY, bytes=size, grid=None,
                api="cudaMemcpyAsync")  # fmt: skip


def write_dict(path: Path, of: schema.Capture | Records) -> Path:
    """Write the dict lines of a capture, or of its records."""
    with path.open("wb") as file:
        dict_lines.write(of if isinstance(of, Records) else parse(of), file)
    return path


def records(of: schema.Capture) -> Records:
    return parse(of)


def table(of: schema.Capture) -> Table:
    return Table(parse(of))


def op(name: str, at: Bounds, *tensors: Tensor, mod: str = "torch") -> Range:
    return Range(encode_op(Call(mod, name, tensors)), at)


def trace(at: Bounds, *frames: str) -> Range:
    return Range(encode_trace(frames), at)


def layer(name: str, at: Bounds) -> Range:
    return Range(encode_layer(name), at)


US = 1000
"""A microsecond in ns."""


def one_step(begin: int, name: str = "step 0") -> tuple[list[Work], list[Api], list[Range]]:
    """Write a step of a small network: two products, an add, `.item()`; it takes 400 us."""
    x, w = Tensor((512, 512), "float32"), Tensor((512, 512), "float32")
    at = [begin + place * 100 * US for place in range(4)]
    work = [
        Work((at[0] + 20 * US, at[0] + 80 * US), (at[0] + 5 * US, at[0] + 10 * US), SGEMM_A100),
        Work((at[1] + 20 * US, at[1] + 70 * US), (at[1] + 5 * US, at[1] + 10 * US), SGEMM_A100),
        Work((at[2] + 20 * US, at[2] + 30 * US), (at[2] + 5 * US, at[2] + 10 * US), ADD),
        copy((at[2] + 40 * US, at[2] + 42 * US), (at[2] + 32 * US, at[2] + 38 * US), 4, "DtoH"),
    ]
    api = [Api("cudaStreamSynchronize", (at[2] + 39 * US, at[2] + 60 * US))]
    inner = [(start, start + 12 * US) for start in at[:3]]
    ranges = [
        Range(name, (begin, begin + 400 * US)),
        trace((begin + US, at[3]), "/src/train.py:20"),
        layer("net", (begin + 2 * US, at[2] - US)),
        layer("net.fc1", (inner[0][0] + 3 * US, inner[0][1])),
        trace((inner[0][0] + 3 * US, inner[0][1]), "/src/train.py:20", "/src/net.py:5"),
        op("matmul", (inner[0][0] + 4 * US, inner[0][1]), x, w),
        layer("net.fc2", (inner[1][0] + 3 * US, inner[1][1])),
        trace((inner[1][0] + 3 * US, inner[1][1]), "/src/train.py:20", "/src/net.py:6"),
        op("matmul", (inner[1][0] + 4 * US, inner[1][1]), x, w),
        op("add", (inner[2][0] + 4 * US, inner[2][1]), x, w),
    ]
    return work, api, ranges


def training(steps: int = 4, first: int = 400 * US) -> schema.Capture:
    """Write steps of 400 us after each other, the second `first` after the beginning."""
    begins = [0, *(first + place * 400 * US for place in range(steps - 1))]
    work: list[Work] = []
    api: list[Api] = []
    ranges: list[Range] = []
    for number, begin in enumerate(begins):
        step = one_step(begin, f"step {number}")
        work += step[0]
        api += step[1]
        ranges += step[2]
    return capture(work, api, ranges)


def optimized() -> schema.Capture:
    """Build a capture whose steps only ranges of the optimizer show."""
    ranges = [Range("Optimizer.step#Adam.step", (at, at + 10)) for at in (100, 200, 300)]
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 120, 250)]
    return capture(work, ranges=[*ranges, trace((0, 400), "/src/train.py:7")])
