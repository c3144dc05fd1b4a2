"""Contents of a profiler's database, and what it reveals about the machine."""

from pathlib import Path

from pyprof.capture.under_profiler import database
from tests.builders import Work, nsys_db, rocpd_db

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def test_tables_without_rows_are_left_out(tmp_path: Path) -> None:
    export = nsys_db(tmp_path / "net.sqlite", [Work("gemm", (10, 20), (1, 2))])
    names = [KERNELS, "CUPTI_ACTIVITY_KIND_MEMSET", "absent"]
    assert database.nonempty_tables(export, names) == [KERNELS]


def test_other_files_have_no_tables(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    for file in (tmp_path / "text", tmp_path / "absent"):
        assert database.tables(file) == frozenset()
        assert database.nonempty_tables(file, [KERNELS]) == []
        assert database.private_content(file) == []


def test_a_rocpd_file_reveals_its_machine(tmp_path: Path) -> None:
    path = rocpd_db(tmp_path / "net.db", [Work(pid=1), Work(pid=2)])
    said = database.private_content(path)
    assert len(said) == 2
    assert all("before sharing the file" in line for line in said)
    assert any("rocpd_info_process: the environment" in line for line in said)
