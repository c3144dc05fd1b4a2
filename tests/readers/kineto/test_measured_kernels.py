"""Kernels of CUPTI's range profiler: GPU work, though the trace has no event of the usual kind."""

from pathlib import Path
from typing import Any

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
    """The n-th kernel is of the n-th launch; it begins there, and lasts as long as was measured."""
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


def test_more_launches_than_measured_kernels_tie_none(tmp_path: Path) -> None:
    """Which launch is whose is unknown then; the kernels are there all the same."""
    rows = read(tmp_path, [*LAUNCHED, measured("sgemm", 0, dram__bytes_sum=1.0)]).activities
    assert (rows["name"].to_pylist(), rows["corr"].to_pylist()) == (["sgemm"], [None])


def test_a_measured_window_is_no_kernel(tmp_path: Path) -> None:
    rows = read(tmp_path, [*LAUNCHED, measured("__profile__", 0, dram__bytes_sum=1.0)]).activities
    assert set(rows["kind"].to_pylist()) == {schema.CPU}


def test_kernels_with_times_go_before_measured_ones(tmp_path: Path) -> None:
    rows = read(tmp_path, [*LAUNCHED, kernel(11, 6), measured("sgemm", 0)]).activities
    assert rows["corr"].to_pylist() == [11]
