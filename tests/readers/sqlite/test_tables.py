"""SQLite tables as columns: what tools write is taken as it is, all else is converted."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof.readers.sqlite import pages, tables

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
def test_a_value_of_another_type_behind_the_first_rows_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object, start: int | None, text: str
) -> None:
    """Whatever is behind rows that are plain: no value is lost, and none stops the reader."""
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    db = _database(tmp_path / "t.sqlite", [*_PLAIN, (value, value), (4, "d")])

    rows = db.read("t", {"start": int, "text": str, "missing": int})

    assert rows.column("start").to_pylist() == [1, 2, 3, None, -(2**63), start, 4]
    assert rows.column("text").to_pylist() == ["a", "b", "c", "", "", text, "d"]
    assert rows.column("missing").to_pylist() == [None] * 7


@pytest.mark.parametrize("text", ["a" * 3000, 5], ids=["plain", "converted"])
def test_each_piece_is_given_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: object
) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 2)
    monkeypatch.setattr(pages, "_CHUNK_BYTES", 4096)
    db = _database(tmp_path / "t.sqlite", [(number, text) for number in range(5)])
    seen: list[int] = []

    def odd(piece: pa.Table) -> pa.Table:
        seen.extend(piece.column("start").to_pylist())
        return piece.filter(pa.array([start % 2 == 1 for start in seen[-len(piece) :]]))

    columns: dict[str, type] = {"start": int, "text": str}
    rows = db.read("t", columns, piece=lambda piece: odd(piece) if len(piece) else piece)

    assert seen == [0, 1, 2, 3, 4]
    assert rows.column("start").to_pylist() == [1, 3]


# --- a log beside the file ----------------------------------------------------------------------


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


def test_a_log_is_applied_also_where_a_link_leads_to_its_file(tmp_path: Path) -> None:
    """SQLite looks for the log beside the file, so a link must not hide it."""
    path = _with_log(tmp_path, 100)
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    for each in (path, link):
        rows = tables.Database(each).read("t", {"start": int})
        assert rows.column("start").to_pylist() == [*range(100)]


def test_a_log_larger_than_its_file_is_applied_and_nothing_is_left_beside_it(
    tmp_path: Path,
) -> None:
    """The rows of a log count as well; its index stays in memory."""
    path = _with_log(tmp_path, 30_000)
    assert path.with_name("a.sqlite-wal").stat().st_size > 20 * path.stat().st_size
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert tables.Database(path).read("t", {"start": int}).num_rows == 30_000
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


# --- row ids --------------------------------------------------------------------------------------


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
    """In descending order it is a column like others, and no other name of the row id."""
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE t (id {key}, text TEXT)")
        db.executemany("INSERT INTO t VALUES (?, 'x')", [(None,), (None,)])
        db.commit()
    assert tables.Database(path).read("t", {"id": kind}).column("id").to_pylist() == expected
