"""The metadata of an nsys export."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyprof import readers, schema
from pyprof.readers.nsys import info
from pyprof.readers.sqlite.tables import Database
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.capture_files.metrics import nsys_metrics
from tests.capture_files.model import Rows, Value
from tests.damage import sql
from tests.parse.counters import planted


def _database(path: Path, *statements: str) -> Path:
    nsys_db(path, [Work("gemm", call=(100, 110))])
    sql(path, *statements)
    return path


def test_a_processs_cuda_device_numbers_take_precedence(tmp_path: Path) -> None:
    path = _database(
        tmp_path / "net.sqlite",
        "DROP TABLE IF EXISTS TARGET_INFO_GPU",
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, cuDevice INTEGER)",
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'A', 0), (1, 'B', 1)",
        "DROP TABLE IF EXISTS TARGET_INFO_CUDA_DEVICE",
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER)",
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0)",
    )
    assert info.cuda_numbers(Database(path)) == {0: 0, 1: 0}


def test_messages_of_lost_events_are_passed_on(tmp_path: Path) -> None:
    path = _database(
        tmp_path / "net.sqlite",
        "DROP TABLE IF EXISTS DIAGNOSTIC_EVENT",
        "CREATE TABLE DIAGNOSTIC_EVENT (text TEXT)",
        "INSERT INTO DIAGNOSTIC_EVENT VALUES ('12 events\nwere dropped'), ('all is well')",
    )
    said = [text for text in readers.read(path).warnings if "nsys" in text]
    assert "message from nsys: 12 events were dropped" in said
    assert not any("all is well" in text for text in said)


def test_page_faults_of_unified_memory_are_counted(tmp_path: Path) -> None:
    """A row of the GPU's table stands for several; without any there is no warning."""
    path = _database(
        tmp_path / "net.sqlite",
        "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER, numberOfPageFaults INTEGER)",
        "INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (1, 1200), (2, 34), (3, -7)",
        "CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INTEGER, address INTEGER)",
        "INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (1, 4096), (2, 4096)",
    )
    said = " ".join(readers.read(path).warnings)
    assert "1,234 page faults of GPUs and 2 of CPUs" in said
    bare = readers.read(_database(tmp_path / "bare.sqlite"))
    assert not any("page faults" in text for text in bare.warnings)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("2020.3", None),
        ("2021.2", None),
        ("2022.4", "2022.4.2.1"),
        ("2024.6", "2024.6.2.225"),
        ("2026.2", "2026.2.1.1"),
    ],
)
def test_the_version_and_the_gpu_are_read_if_the_file_has_them(
    name: str, version: str | None, tmp_path: Path
) -> None:
    """The GPU from TARGET_INFO_GPU, or 2020's TARGET_INFO_CUDA_GPU; in 2026 both may be missing."""
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", [Work()], (), LAYOUTS[name]))
    a100 = {
        "device": 0,
        "name": "NVIDIA A100-SXM4-80GB",
        "sm_count": 108,
        "clock_hz": 1_410_000_000,
        "bandwidth": 2_039_000_000_000,
        "cc_major": 8,
        "cc_minor": 0,
        "memory_bytes": 80 << 30,
    }
    assert capture.version == version
    assert capture.devices.to_pylist() == ([] if name == "2026.2" else [a100])


_RTX: dict[str, Value] = {"name": "NVIDIA GeForce RTX 4070 Laptop GPU", "smCount": 36}
_LAPTOP: Rows = [
    {"id": 0, "name": "Intel(R) Arc(TM) Graphics", "smCount": 0, "computeMajor": 0},
    {"id": 1, **_RTX, "computeMajor": 8, "computeMinor": 9},
    {"id": 2, "name": "Microsoft Basic Render Driver", "smCount": 0, "computeMajor": 0},
]
"""A laptop's GPUs; all have CUDA's number 0."""


def _gpus_read(path: Path, gpus: Rows, *mapped: tuple[int, ...]) -> schema.Capture:
    columns = ("id", "name", "smCount", "cuDevice", "computeMajor", "computeMinor")
    rows = [{"cuDevice": 0, "computeMinor": 0, **gpu} for gpu in gpus]
    more: dict[str, Rows] = {
        "TARGET_INFO_GPU": [{name: row[name] for name in columns} for row in rows]
    }
    if mapped:
        more["TARGET_INFO_CUDA_DEVICE"] = [
            dict(zip(("pid", "gpuId", "cudaId", "numMultiprocessors"), row, strict=False))
            for row in ((100 + place, *given) for place, given in enumerate(mapped))
        ]
    layout = replace(LAYOUTS["2024.6"], gpus=None, more=more)
    return readers.read(nsys_db(path / "a.sqlite", [Work()], (), layout))


@pytest.mark.parametrize("mapped", [[], [(1, 0)]], ids=["by capability", "by the table"])
def test_of_a_laptops_gpus_the_one_that_runs_cuda_is_read(
    tmp_path: Path, mapped: list[tuple[int, int]]
) -> None:
    """Display adapters have the number 0, too."""
    (device,) = _gpus_read(tmp_path, _LAPTOP, *mapped).devices.to_pylist()
    assert (device["device"], device["name"], device["cc_major"]) == (0, _RTX["name"], 8)


def test_each_process_may_number_the_gpus_anew(tmp_path: Path) -> None:
    """With CUDA_VISIBLE_DEVICES every rank has a device 0, known if all GPUs are alike."""
    both: Rows = [
        {"id": gpu, "cuDevice": gpu, "name": name, "smCount": 132, "computeMajor": 9}
        for gpu, name in enumerate(["NVIDIA H100", "NVIDIA H100", "NVIDIA H200"])
    ]
    devices = _gpus_read(tmp_path, both, (0, 0), (1, 0)).devices.to_pylist()
    assert {row["device"]: row["name"] for row in devices}[0] == "NVIDIA H100"
    devices = _gpus_read(tmp_path, both, (1, 0), (2, 0)).devices.to_pylist()
    assert {row["device"]: row["name"] for row in devices}[0] is None


def test_a_process_may_see_only_some_of_a_gpus_sms(tmp_path: Path) -> None:
    """With MIG, or with MPS and a share of the threads."""
    gpus: Rows = [{"id": 7, "name": "NVIDIA H100", "smCount": 132, "computeMajor": 9}]
    for counts, seen in (((16,), 16), ((16, 16), 16), ((16, 66), None), ((0,), 132)):
        (device,) = _gpus_read(
            tmp_path, gpus, *((7, 0, count) for count in counts)
        ).devices.to_pylist()
        assert (device["name"], device["sm_count"]) == ("NVIDIA H100", seen)


def test_processes_that_may_share_a_gpu_are_said_to_unless_the_file_tells_their_gpus(
    tmp_path: Path,
) -> None:
    """Else a GPU that four processes keep busy in turn would be said to idle for 75 %."""
    two = [Work(pid=1, tid=11), Work(pid=2, tid=22)]
    mapping: Rows = [{"gpuId": gpu, "cudaId": 0, "pid": pid} for gpu, pid in ((5, 1), (6, 2))]
    known = replace(LAYOUTS["2024.6"], more={"TARGET_INFO_CUDA_DEVICE": mapping})
    for works, layout, warned in (
        (two, LAYOUTS["2024.6"], True),
        (two, known, False),
        (two[:1], LAYOUTS["2024.6"], False),
    ):
        path = nsys_db(tmp_path / f"{warned}.sqlite", works, (), layout)
        said = " ".join(readers.read(path).warnings)
        assert ("several processes used GPU 0" in said) is warned


def test_graph_launches_are_warned_of_with_their_time(tmp_path: Path) -> None:
    ranges = [Range("step", (5, 100))]
    graph = Work(kind="graph", at=(1600, 1900), call=(90, 95))
    (warning,) = readers.read(nsys_db(tmp_path / "a.sqlite", [Work(), graph], ranges)).warnings
    assert "CUDA graph launches (1) contain 0.00 ms" in warning
    assert "--cuda-graph-trace=node" in warning
    long = [
        Work(kind="graph", at=(9_000_000, 11_500_000)),
        Work(at=(5, 1_000_005), stream=8),
        Work(),
    ]
    (warning,) = readers.read(nsys_db(tmp_path / "b.sqlite", long, ranges)).warnings
    assert "2.50 ms" in warning
    assert "1.00 ms is outside" in warning


def test_the_begin_of_the_session_is_read(tmp_path: Path) -> None:
    """Times count from it; without its table, or if that is empty, it is unknown."""
    path = nsys_db(tmp_path / "net.sqlite", [Work()])
    assert readers.read(path).began_ns is None
    sql(path, "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT)")
    assert readers.read(path).began_ns is None
    sql(path, "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1713889498851521398, '')")
    assert readers.read(path).began_ns == 1713889498851521398


def test_metrics_are_known_by_type_and_id(tmp_path: Path) -> None:
    """Another GPU may have other metrics with the same ids."""
    work = planted.work_of(steps=300)
    tables = nsys_metrics(planted.metrics(work))
    other = nsys_metrics({"other": ([100_000, 200_000], [99.0, 99.0])}, gpu=1)
    both = {name: tables[name] + other[name] for name in tables}
    path = planted.capture(tmp_path / "net.sqlite", work, both)
    planted.check(planted.rows(path, planted.COLUMNS))


def test_metrics_of_a_gpu_by_its_number_in_cuda(tmp_path: Path) -> None:
    """Nsys numbers all GPUs of the machine, kernels those that the process sees."""
    work = [replace(piece, device=2) for piece in planted.work_of(steps=300)]
    gpu: dict[str, Value] = {
        "id": 3, "cuDevice": 2, "name": "NVIDIA A100-SXM4-80GB", "smCount": 108, "clockRate": 1410,
        "memoryBandwidth": int(planted.PEAK), "computeMajor": 8, "computeMinor": 0,
    }  # fmt: skip
    tables = {**nsys_metrics(planted.metrics(work), gpu=3), "TARGET_INFO_GPU": [gpu]}
    layout = replace(LAYOUTS["2024.6"], gpus=None, more=tables)
    planted.check(planted.rows(nsys_db(tmp_path / "net.sqlite", work, (), layout), planted.COLUMNS))


def test_equivalent_metrics_count_once(tmp_path: Path) -> None:
    work = planted.work_of(steps=300)
    times, _ = planted.metrics(work)["tensor_pct"]
    tables = nsys_metrics({"clock_mhz": (times, [1095.0] * len(times))})
    again = nsys_metrics({"clock_mhz": (times, [1410.0] * len(times))}, first_id=9)
    both = {name: tables[name] + again[name] for name in tables}
    rows = planted.rows(planted.capture(tmp_path / "net.sqlite", work, both), "clock")
    assert len({row["Clock(MHz)"] for row in rows}) == 1
    assert rows[0]["Clock(MHz)"] in ("1095", "1410")
