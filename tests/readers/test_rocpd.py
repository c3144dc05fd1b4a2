"""rocpd: no dispatch lost, launches by stack id, ROCTx ranges, several recordings in one."""

from pathlib import Path

import pytest

from pyprof import readers, schema
from pyprof.parse import parse
from tests import damage
from tests.builders import CAPTURES, Range, Work, rocpd_db
from tests.damage import ROCPD_SUFFIX as SUFFIX
from tests.damage import sql
from tests.readers.test_nsys import rows

SHARED = CAPTURES / "rocpd-mi300x-bmm" / "results.db"

WORK = (
    Work("gemm", at=(1000, 1100), call=(10, 20)),
    Work("relu", at=(1200, 1250), call=(30, 40), device=1, stream=8),
    Work(kind="memcpy", at=(1300, 1400), call=(50, 60), copy_kind=2, bytes=77),
    Work(kind="memset", at=(1500, 1510), call=(70, 80)),
    Work("edge", at=(1700, 1710)),
)
RANGES = (
    Range("layer:encoder", (5, 100)),
    Range("aten::mm, seq = 4", (8, 25)),
    Range("across threads", (0, 500), style=60),
)
FILL = "__amd_rocclr_fillBufferAligned"


@pytest.mark.parametrize("version", [3, 4])
def test_read_returns_every_row_of_both_schemas(version: int, tmp_path: Path) -> None:
    capture = readers.read(rocpd_db(tmp_path / "net.db", WORK, RANGES, version=version))
    schema.check(capture)
    assert (capture.tool, capture.version) == ("rocpd", f"schema {version}")
    assert rows(capture.activities, "start", "end", "device", "stream", "corr", "name") == [
        (1000, 1100, 0, 7, 1, "gemm"),
        (1200, 1250, 1, 8, 2, "relu"),
        (1300, 1400, 0, 7, 3, "[CUDA memcpy DtoH]"),
        (1500, 1510, 0, 7, 4, FILL),
        (1700, 1710, 0, 7, 5, "edge"),
    ]
    assert rows(capture.calls, "start", "end", "corr", "name") == [
        (10, 20, 1, "hipLaunchKernel"),
        (30, 40, 2, "hipLaunchKernel"),
        (50, 60, 3, "hipMemcpyAsync"),
        (70, 80, 4, "hipMemsetAsync"),
    ]
    assert rows(capture.ranges, "start", "end", "style", "text", "seq") == [
        (0, 500, schema.FREE, "across threads", None),
        (5, 100, schema.NESTED, "layer:encoder", None),
        (8, 25, schema.NESTED, "aten::mm, seq = 4", 4),
    ]


@pytest.mark.parametrize("version", [3, 4])
def test_processes_are_listed_by_the_first_device_of_each(version: int, tmp_path: Path) -> None:
    work = [Work(pid=1, device=1), Work(pid=2, kind="memcpy", device=2), Work(pid=3, device=0)]
    path = rocpd_db(tmp_path / "net.db", work, version=version)
    assert readers.identity(path).pids == (3, 1, 2)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_file(), reason="the shared captures are not here")
def test_launches_of_a_real_file_are_those_of_its_views() -> None:
    """301 dispatches of an MI300X, joined in SQL with the views that rocprofv3 defines."""
    query = (
        "SELECT k.start, k.end, k.name, r.start, r.end, r.tid FROM kernels k"
        " JOIN regions r ON r.stack_id = k.stack_id AND r.guid = k.guid ORDER BY k.start"
    )
    truth = damage.query(SHARED, query)
    found = parse(readers.read(SHARED)).table().to_pylist()
    assert len(truth) == 301
    assert truth == [
        (row["start"], row["end"], row["kLongName"], *row["launch"], row["tid"]) for row in found
    ]


def test_grids_count_blocks_and_registers_are_those_of_both_files(tmp_path: Path) -> None:
    """The file counts a grid in work items; an MI300X has two kinds of vector registers."""
    path = rocpd_db(tmp_path / "net.db", [Work(grid=(4, 2, 1), block=(128, 1, 1), smem=20_480)])
    (kernel,) = readers.read(path).activities.to_pylist()
    assert [kernel[f"grid_{axis}"] for axis in "xyz"] == [4, 2, 1]
    assert [kernel[f"block_{axis}"] for axis in "xyz"] == [128, 1, 1]
    assert (kernel["regs"], kernel["smem"]) == (24 + 8, 20_480)


def test_a_partial_block_counts_as_one(tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", [Work(block=(128, 1, 1))])
    sizes = "grid_size_x = 129, workgroup_size_y = 0"
    sql(path, f"UPDATE rocpd_kernel_dispatch{SUFFIX} SET {sizes}")  # noqa: S608
    (kernel,) = readers.read(path).activities.to_pylist()
    assert (kernel["grid_x"], kernel["grid_y"]) == (2, None)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "table",
    [
        *("string", "event", "region", "info_agent", "info_process", "info_thread"),
        *("info_kernel_symbol", "metadata"),
    ],
)
def test_no_work_is_lost_without_the_tables_that_describe_it(table: str, tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", WORK, RANGES)
    sql(path, f"DROP TABLE rocpd_{table}{SUFFIX}")
    found = parse(readers.read(path)).table()
    assert found["start"].to_pylist() == [work.at[0] for work in WORK]


def test_a_copy_between_unknown_ends_has_no_direction(tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", WORK)
    sql(path, f"UPDATE rocpd_string{SUFFIX} SET string = 'copy ' || id")  # noqa: S608
    sql(path, f"DELETE FROM rocpd_info_agent{SUFFIX} WHERE type = 'CPU'")  # noqa: S608
    assert "[CUDA memcpy]" in readers.read(path).activities["name"].to_pylist()
