"""GPU work of a trace: kernels measured by CUPTI's range profiler, and collectives."""

import json
from pathlib import Path
from typing import Any

import pytest

from pyprof import schema
from tests.readers.kineto_json import event, kernel, launch, op, read

LAUNCHED = [
    op("aten::mm", 0, 10, External_id=1),
    launch(11, 5),
    op("aten::add", 20, 10, External_id=2),
    launch(12, 25),
]


def measured(name: str, ts: float, **counters: float) -> dict[str, Any]:
    """Write a kernel as the range profiler does: spread evenly, the device as its process."""
    named = {key.replace("_sum", ".sum"): value for key, value in counters.items()}
    return event("cuda_profiler_range", name, ts, 50, pid=0, tid=0, **named)


def test_measured_kernels_are_gpu_work_at_their_launches(tmp_path: Path) -> None:
    """The n-th kernel begins at the n-th launch and has its measured duration."""
    kernels = [
        measured("sgemm", 0, gpu__time_duration_sum=3000.0, dram__bytes_sum=640.0),
        measured("add", 50, gpu__time_duration_sum=2000.4),
    ]
    capture = read(tmp_path, [*LAUNCHED, *kernels])
    rows = capture.activities.to_pylist()
    assert [(row["kind"], row["name"], row["corr"], row["device"]) for row in rows] == [
        (schema.KERNEL, "sgemm", 11, 0),
        (schema.KERNEL, "add", 12, 0),
    ]
    assert [(row["start"], row["end"]) for row in rows] == [(5000, 8000), (25000, 27000)]
    assert "640" in rows[0]["counters"]
    assert "CUPTI's range profiler" in capture.warnings[0]


@pytest.mark.parametrize(
    ("more", "rows"),
    [
        # fewer than launches: theirs are unknown, and all kernels are kept
        ([measured("sgemm", 0, dram__bytes_sum=1.0)], [(schema.KERNEL, "sgemm", None)]),
        # a range that is not a kernel: all kernels are lost
        ([measured("__profile__", 0, dram__bytes_sum=1.0)], []),
        # kernels with times take precedence
        ([kernel(11, 6), measured("sgemm", 0)], [(schema.KERNEL, "gemm", 11)]),
    ],
    ids=["one", "no kernel", "times"],
)
def test_measured_kernels_are_tied_only_if_launches_are_as_many(
    tmp_path: Path, more: list[dict[str, Any]], rows: list[tuple[int, str, int | None]]
) -> None:
    found = read(tmp_path, [*LAUNCHED, *more]).activities.to_pylist()
    assert [(row["kind"], row["name"], row["corr"]) for row in found] == rows


def test_counters_of_an_xpu_kernel_are_not_a_second_kernel(tmp_path: Path) -> None:
    """The scope profiler repeats each kernel, a nanosecond longer on both sides."""
    again = event("kernel", "metrics: gemm", 5.999, 5.002, pid=0, tid=7, kernel_id=9, queue="1")
    rows = read(tmp_path, [*LAUNCHED, kernel(11, 6), again]).activities
    assert rows["name"].to_pylist() == ["gemm"]


def test_a_device_number_that_is_too_large_is_unknown(tmp_path: Path) -> None:
    """It is not another device's number."""
    event = kernel(11, 6)
    event["args"]["device"] = 1 << 32
    assert read(tmp_path, [*LAUNCHED, event]).activities["device"].to_pylist() == [None]


def _kineto(folder: Path, **args: object) -> dict[str, Any]:
    event = kernel(1, 20, name="ncclDevKernel_AllReduce_Sum_f16_RING_LL")
    event["args"] |= args
    capture = read(folder, [op("c10d::allreduce_", 1, 9), launch(1, 2), event])
    (found,) = capture.activities.column("collective").to_pylist()
    return json.loads(found) if found else {}


SAID = {"Collective name": "allreduce", "Process Group Ranks": "[0, 4]"}
FULL = {"Process Group Name": "3", "Group size": 2, "dtype": "BFloat16",
        "In msg nelems": 1024, "Out msg nelems": 1024}  # fmt: skip
NAMED = {"name": "allreduce", "group": "3", "ranks": "[0, 4]"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # as PyTorch 2.3 and later write them in the kernel's event
        (SAID | FULL, NAMED | {"size": 2, "dtype": "BFloat16", "in": 1024, "out": 1024}),
        # numbers and lists of other versions are the same texts
        (SAID | {"Process Group ID": 3, "Process Group Ranks": [0, 4]}, NAMED),
        ({}, {}),
    ],
    ids=["2.3", "others", "none"],
)
def test_a_collective_has_its_group_and_size(
    tmp_path: Path, said: dict[str, object], expected: dict[str, object]
) -> None:
    assert _kineto(tmp_path, **said) == expected
