"""SQLite tables as columns: each value is converted to the type wanted."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof import readers
from pyprof.capture.under_profiler.database import nonempty_tables
from pyprof.errors import CaptureError
from pyprof.readers import nsys
from pyprof.readers.sqlite import tables
from tests.builders import Range, Work, nsys_db, table, write_tables
from tests.commands import refused, run
from tests.damage import sql
from tests.texts import texts

_PLAIN = [(1, "a"), (2, "b"), (3, "c"), (None, None), (-(2**63), "")]


def _database(path: Path, rows: Sequence[tuple[object, object]]) -> tables.Database:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (start, text)")
        db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        db.commit()
    return tables.Database(path)


@pytest.mark.parametrize(
    ("value", "start", "text"),
    [(5.0, 5, "5.0"), ("7", 7, "7"), ("seven", None, "seven"), (b"8", 8, "8"), (9, 9, "9")],
    ids=repr,
)
def test_a_value_of_another_type_after_the_first_rows_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object, start: int | None, text: str
) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    db = _database(tmp_path / "t.sqlite", [*_PLAIN, (value, value), (4, "d")])

    rows = db.read("t", {"start": int, "text": str, "missing": int})

    assert rows.column("start").to_pylist() == [1, 2, 3, None, -(2**63), start, 4]
    assert rows.column("text").to_pylist() == ["a", "b", "c", "", "", text, "d"]
    assert rows.column("missing").to_pylist() == [None] * 7


def test_floats_after_a_batch_of_nulls_keep_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    db = _database(tmp_path / "t.sqlite", [(None, ""), (None, ""), (0.5, ""), (3, "")])
    rows = db.read("t", {"start": float})
    assert rows.column("start").to_pylist() == [None, None, 0.5, 3.0]


def test_each_batch_is_yielded_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    db = _database(tmp_path / "t.sqlite", [(number, "a") for number in range(5)])
    seen: list[int] = []

    def odd(piece: pa.Table) -> pa.Table:
        seen.extend(piece.column("start").to_pylist())
        return piece.filter(pa.array([start % 2 == 1 for start in seen[-len(piece) :]]))

    columns: dict[str, type] = {"start": int, "text": str}
    rows = db.read("t", columns, piece=lambda piece: odd(piece) if len(piece) else piece)

    assert seen == [0, 1, 2, 3, 4]
    assert rows.column("start").to_pylist() == [1, 3]


def _with_log(folder: Path, rows: int) -> Path:
    with closing(sqlite3.connect(folder / "writing.sqlite", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE t (start)")
        db.execute("PRAGMA wal_checkpoint(truncate)")
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?)", [(row,) for row in range(rows)])
        db.execute("COMMIT")
        (folder / "left").mkdir()
        for ending in ("", "-wal"):
            shutil.copy(folder / f"writing.sqlite{ending}", folder / "left" / f"a.sqlite{ending}")
    return folder / "left" / "a.sqlite"


def test_a_log_is_applied_through_a_symbolic_link(tmp_path: Path) -> None:
    """SQLite looks for it beside the file itself."""
    path = _with_log(tmp_path, 100)
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    for each in (path, link):
        rows = tables.Database(each).read("t", {"start": int})
        assert rows.column("start").to_pylist() == [*range(100)]


def test_a_log_larger_than_its_file_is_applied_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    """Its index stays in memory."""
    path = _with_log(tmp_path, 30_000)
    assert path.with_name("a.sqlite-wal").stat().st_size > 20 * path.stat().st_size
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert tables.Database(path).read("t", {"start": int}).num_rows == 30_000
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize(
    ("key", "kind", "expected"),
    [
        ("INTEGER PRIMARY KEY", int, [1, 2]),
        ("INTEGER PRIMARY KEY", str, ["1", "2"]),
        ("INTEGER PRIMARY KEY DESC", int, [None, None]),
        ("INTEGER PRIMARY KEY DESC", str, ["", ""]),
    ],
)
def test_a_primary_key_is_read_as_sqlite_reads_it(
    tmp_path: Path, key: str, kind: type, expected: list[object]
) -> None:
    """In descending order it is an ordinary column, not the row id."""
    rows = "INSERT INTO t VALUES (NULL, 'x'), (NULL, 'x')"
    path = sql(tmp_path / "t.sqlite", f"CREATE TABLE t (id {key}, text TEXT)", rows)
    assert tables.Database(path).read("t", {"id": kind}).column("id").to_pylist() == expected


WORK = [Work(call=(1, 2)), Work("other", at=(1200, 1300), call=(3, 4))]
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def test_a_view_is_not_a_table(tmp_path: Path) -> None:
    """A view is a program that may return rows without end."""
    path = nsys_db(tmp_path / "net.sqlite", WORK, [Range("x", (1, 2))])
    rename = f"ALTER TABLE {KERNELS} RENAME TO rows"
    sql(path, rename, f"CREATE VIEW {KERNELS} AS SELECT * FROM rows")  # noqa: S608
    assert "none was recorded" in refused("parse", path)
    assert nsys.identity(path).pids == ()


def test_a_view_of_strings_makes_no_capture(tmp_path: Path) -> None:
    """The table by which the file is recognised has to be a real one."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    sql(path, "ALTER TABLE StringIds RENAME TO s", "CREATE VIEW StringIds AS SELECT * FROM s")
    assert "without its table of strings" in run("parse", path).stderr


@pytest.mark.parametrize(
    "create",
    [
        "CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, end, eventType, globalTid, text)",
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text AS ('layer:never'))",
    ],
)
def test_virtual_tables_and_generated_columns_are_not_read(create: str, tmp_path: Path) -> None:
    """They are not stored."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    insert = "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid) VALUES (0, 99, 59, 1)"
    capture = readers.read(sql(path, create, insert))
    assert capture.activities.num_rows == 2
    assert "layer:never" not in texts(capture.ranges)


def test_a_view_is_not_queried_for_rows(tmp_path: Path) -> None:
    path = write_tables(tmp_path / "a.sqlite", {"T": table(("x",), (1,))})
    sql(path, "CREATE VIEW V AS SELECT * FROM T")
    assert nonempty_tables(path, ["T", "V", "U"]) == ["T"]


def _with_a_page_twice(path: Path, table: str) -> None:
    """Let the first two places of the root of a table name the same page."""
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = db.execute(query, (table,)).fetchone()
        (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    page = memoryview(content)[(root - 1) * page_bytes : root * page_bytes]
    assert page[0] == 5, "the table has one page alone"
    first, second = (int.from_bytes(page[at : at + 2], "big") for at in (12, 14))
    page[second : second + 4] = page[first : first + 4]
    path.write_bytes(content)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("ask", [readers.read, readers.identity])
def test_more_rows_than_the_file_has_room_for(
    ask: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that contain each other are damage; here every row claims to take a page."""
    path = nsys_db(tmp_path / "net.sqlite", WORK * 5000)
    _with_a_page_twice(path, KERNELS)
    monkeypatch.setattr(tables, "_ROW_BYTES", 4096)
    with pytest.raises(CaptureError, match="damaged or truncated"):
        ask(path)  # type: ignore[operator]


def test_a_file_that_is_being_written_is_not_a_damaged_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite waits for some seconds before it reports it."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    impatient = partial(sqlite3.connect, timeout=0)
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", impatient)
        with pytest.raises(CaptureError, match="a program is writing to it; try again"):
            readers.read(path)


def test_ids_of_strings_may_be_of_any_size(tmp_path: Path) -> None:
    """No array as long as the largest id is made, and every id can be looked up."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    far = 1 << 40
    sql(
        path,
        f"UPDATE StringIds SET id = id + {far}",  # noqa: S608
        f"UPDATE {KERNELS} SET demangledName = demangledName + {far}",  # noqa: S608
    )
    names = readers.read(path).activities.column("name").to_pylist()
    assert names == ["gemm", "other"]


def test_of_strings_with_one_id_the_last_counts(tmp_path: Path) -> None:
    listed = ((7, "x"), (None, "y"), (-3, "z"), (90, "gemm"), (7, "other"))
    columns = ("start", "end", "demangledName", "correlationId")
    kernels = table(columns, *((n, n + 1, name, n) for n, name in enumerate((7, 90, 8, -3))))
    strings = table(("id", "value"), *listed)
    path = write_tables(tmp_path / "net.sqlite", {"StringIds": strings, KERNELS: kernels})
    names = readers.read(path).activities.column("name").to_pylist()
    assert names == ["other", "gemm", "unknown kernel", "unknown kernel"]
