"""Sound inputs to damage: small captures as tools write them, and their parsed files.

Each exercises what its reader knows: several layouts, all kinds of work, markers of all kinds.
"""

import gzip
import itertools
import json
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyprof import marker
from pyprof.marker import Call, Tensor
from tests.allocations import built
from tests.builders import CAPTURES, LAYOUTS, Range, Work, nsys_db, nvprof_db, rocpd_db
from tests.capture_files.metrics import kineto_counters, nsys_metrics
from tests.capture_files.ncu import FORMS, METRICS, Profiled
from tests.commands import run
from tests.readers import ascend_json
from tests.readers.kineto_json import Event, event, kernel, launch, op


@dataclass(frozen=True)
class Seed:
    name: str
    kind: str
    """`sqlite`, `json`, `gzip`, `dict`, `literal`, `parquet`, `pickle` or `csv`."""
    data: bytes

    @property
    def is_built(self) -> bool:
        """Whether it is generated, not one of the real captures beside the project."""
        return "/" not in self.name


NODE = "autograd::engine::evaluate_function: "
_X = Tensor((8, 16), "float16")
TEXTS = (
    marker.encode_op(Call("torch.nn.functional", "linear", (_X, _X))),
    marker.encode_trace(["train.py:10", "model.py:32"], ["main", "forward"]),
    "layer:net.encoder.0",
    (
        "aten::addmm, seq = 4, op_id = 17, sizes = [[16], [8, 16], [16, 16]], "
        "input_op_ids = [(3,0), (0,-1), (9,0)]"
    ),
    f"{NODE}AddmmBackward0, op_id = 35",
    "AddmmBackward0, seq = 4, op_id = 36, sizes = [[8, 16]]",
    "Optimizer.step#SGD.step",
    "ProfilerStep#1",
    "ncclDevKernel_AllReduce",
    "{'mod': 'LSTMCell', 'strRepr': '10, 20'}",
)
NAMES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x5_nn",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_ZN2at6native13reduce_kernelILi512EEEvT_",
    "triton_poi_fused_add_0",
)
_STEPS = 3
_STEP_NS = 100_000


_APIS = {
    "kernel": "cudaLaunchKernel_v7000",
    "memcpy": "cudaMemcpyAsync_v3020",
    "memset": "cudaMemsetAsync_v3020",
}


def _work() -> list[Work]:
    found = []
    for step, place in itertools.product(range(_STEPS), range(len(NAMES))):
        at = 10_000 + step * _STEP_NS + place * 10_000
        kind = ("kernel", "kernel", "kernel", "memcpy", "memset")[place]
        work = Work(NAMES[place], (at + 5_000, at + 9_000), (at, at + 2_000), kind)
        found.append(replace(work, stream=7 + place % 2, tid=11 + place % 2, api=_APIS[kind]))
    return found


def _ranges() -> list[Range]:
    found = []
    for step in range(_STEPS):
        base = 9_000 + step * _STEP_NS
        for place, text in enumerate(TEXTS):
            tid = 12 if "Backward" in text else 11
            found.append(Range(text, (base + place, base + 60_000 - place), tid=tid))
    found[-1] = replace(found[-1], at=(found[-1].at[0], None))
    return [*found, Range("layer:free", (0, 500_000), style=60, end_tid=12)]


def events(*, on_gpu: bool) -> list[Event]:
    found: list[Event] = [
        {"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "args": {"labels": "CPU"}}
    ]
    for step in range(_STEPS):
        at = 1_000.5 + step * 100
        args: dict[str, Any] = {
            "External id": 10 * step + 1,
            "Sequence number": step,
            "Fwd thread id": 0,
            "Input Dims": [[8, 16], [16, 16], []],
            "Input type": ["float", "c10::Half", "Scalar"],
            "Input Strides": [[16, 1], [16, 1], []],
            "Concrete Inputs": ["", "", "1"],
            "Call stack": "model.py(32): forward;train.py(10): main",
            "Module Hierarchy": "TOP(Net)::forward.fc(Linear)::forward",
        }
        back = {**args, "Fwd thread id": 1, "External id": 10 * step + 3}
        found += [
            event("user_annotation", f"ProfilerStep#{step}", at, 99.0),
            event("python_function", "train.py(10): main", at, 98.0),
            event("python_function", "nn.Module: Linear_0", at + 1, 40.0),
            op("aten::linear", at + 2, 30.0, **args),
            op(TEXTS[0], at + 3, 20.0, External_id=10 * step + 2),
            op(f"{NODE}AddmmBackward0", at + 60, 20.0, tid=12, **back),
        ]
        if on_gpu:
            found += _launched(step, at)
    if on_gpu:
        for name in ("DRAM BW (%)", "SM Clock (MHz)", "Power (W)"):
            samples = [*range(1_000_000, 1_300_000, 3_000)], [20.5, 31.5] * 50
            found += kineto_counters(name, samples, key="", pid=0)
    return found


def _launched(step: int, at: float) -> list[Event]:
    nccl = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 64,
            "Group size": 2, "Process Group Ranks": "[0, 1]"}  # fmt: skip
    work: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
        ("kernel", NAMES[1], "cudaLaunchKernel", {}),
        ("kernel", NAMES[2], "cudaLaunchKernel", nccl),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "cudaMemcpyAsync", {"bytes": 4096}),
        ("gpu_memset", "Memset (Device)", "cudaMemsetAsync", {"bytes": 4096}),
    )
    found = []
    for place, (category, name, api, more) in enumerate(work):
        corr = 100 * step + place + 1
        done = kernel(corr, at + 30 + 5 * place, 4.5, name=name)
        done["args"] |= {**more, "External id": 10 * step + 1}
        found += [launch(corr, at + 4 + place, name=api), {**done, "cat": category}]
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": step + 1, "pid": 7}
    start, end = {"ph": "s", "ts": at + 2, "tid": 1}, {"ph": "f", "ts": at + 60, "tid": 12}
    return [*found, {**flow, **start}, {**flow, **end, "bp": "e"}]


def trace(*, on_gpu: bool) -> bytes:
    header = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108,
                              "computeMajor": 8, "computeMinor": 0, "totalGlobalMem": 1 << 36}],
        "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
    }  # fmt: skip
    return json.dumps({**header, "traceEvents": events(on_gpu=on_gpu)}, indent=1).encode()


def seeds() -> list[Seed]:
    with TemporaryDirectory() as made:
        folder = Path(made)
        made_here = (_captures(folder), _records(folder), _memory(), _counters(), _shared())
        return [seed for seeds_of_kind in made_here for seed in seeds_of_kind]


def _captures(folder: Path) -> list[Seed]:
    found = [
        Seed("kineto", "json", trace(on_gpu=True)),
        Seed("kineto on the CPU", "json", trace(on_gpu=False)),
        Seed("kineto, zipped", "gzip", gzip.compress(trace(on_gpu=True), mtime=0)),
        Seed("nvprof", "sqlite", nvprof_db(folder / "a.sql", _work(), _ranges()).read_bytes()),
    ]
    steps = [ascend_json.call(step, queued=step % 2 > 0, arrow=step > 0) for step in range(_STEPS)]
    path = ascend_json.write(folder / "a.json", [each for step in steps for each in step])
    found.append(Seed("torch_npu", "json", path.read_bytes()))
    for version in (3, 4):
        path = rocpd_db(folder / "a.db", _work(), _ranges(), version=version)
        found.append(Seed(f"rocpd, schema {version}", "sqlite", path.read_bytes()))
    samples = [*range(1_000, 400_000, 1_000)], [50.0, 7.0, 0.0] * 133
    names = ("tensor_pct", "read_pct", "write_pct", "clock_mhz")
    metrics = nsys_metrics(dict.fromkeys(names, samples))
    for name in ("2020.3", "2024.6", "2026.2", "registered strings", "duplicate API rows"):
        layout = replace(LAYOUTS[name], more=metrics if name == "2024.6" else {})
        path = nsys_db(folder / "a.sqlite", _work(), _ranges(), layout)
        found.append(Seed(f"nsys, {name}", "sqlite", path.read_bytes()))
    return found


def _counters() -> list[Seed]:
    kernels = [Profiled(name, regs=32 + place, metrics=METRICS) for place, name in enumerate(NAMES)]
    return [
        Seed(f"ncu, {form}", "csv", FORMS[form](kernels).encode()) for form in ("details", "raw")
    ]


def _records(folder: Path) -> list[Seed]:
    path = nsys_db(folder / "b.sqlite", _work(), _ranges())
    for suffix in ("dict", "parquet"):
        run("parse", path, "-q", "-o", folder / f"b.{suffix}")
    lines = (folder / "b.dict").read_bytes()
    old = [repr({**json.loads(line), "grid": (1, 1, 1)}) for line in lines.splitlines()]
    return [
        Seed("dict lines", "dict", lines),
        Seed("lines of literals", "literal", ("\n".join(old) + "\n").encode()),
        Seed("Parquet", "parquet", (folder / "b.parquet").read_bytes()),
    ]


def _memory() -> list[Seed]:
    device = built.training(leak=1000)
    device.oom(1 << 30, 77, built.CALL, built.user(10))
    snapshot = pickle.dumps(built.snapshot(device, built.Device(number=1)))
    memory = [_allocation(place, size) for place, size in enumerate((512, 64, -512, -32, 128))]
    whole = json.loads(trace(on_gpu=False))
    whole["traceEvents"] += memory
    return [
        Seed("kineto with memory", "json", json.dumps(whole).encode()),
        Seed("memory snapshot", "pickle", snapshot),
    ]


def _allocation(place: int, size: int) -> dict[str, Any]:
    args = {"Addr": 64 * abs(size), "Bytes": size, "Device Type": place % 2, "Device Id": 0,
            "Total Allocated": 1000 + size, "Total Reserved": 4096}  # fmt: skip
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7,
            "tid": 1, "ts": 12.0 + 40 * place, "args": args}  # fmt: skip


_SMALL_BYTES = 400_000


def _shared() -> list[Seed]:
    kinds = {
        ".sqlite": "sqlite",
        ".sql": "sqlite",
        ".db": "sqlite",
        ".json": "json",
        ".pickle": "pickle",
    }
    files = sorted(CAPTURES.glob("*/*")) if CAPTURES.is_dir() else []
    return [
        Seed(f"{path.parent.name}/{path.name}", kinds[path.suffix], path.read_bytes())
        for path in files
        if path.suffix in kinds and path.stat().st_size <= _SMALL_BYTES
    ]
