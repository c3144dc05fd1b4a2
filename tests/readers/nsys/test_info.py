"""What an nsys export says of itself."""

from pathlib import Path

from pyprof import readers
from pyprof.readers.nsys import info
from pyprof.readers.sqlite.tables import Database
from tests.builders import Work, nsys_db
from tests.damage import sql


def _database(path: Path, *statements: str) -> Path:
    nsys_db(path, [Work("gemm", call=(100, 110))])
    sql(path, *statements)
    return path


def test_cuda_numbers_of_a_process_go_before_those_of_the_system(tmp_path: Path) -> None:
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
