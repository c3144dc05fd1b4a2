"""Rows read straight from a file's pages equal SQLite's, or SQLite is used."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof.readers.sqlite import pages
from pyprof.readers.sqlite.pages import NotPlainError, Pick, batches
from tests.damage import sql

_TYPES = {"number": pa.int64(), "text": pa.string(), "blob": pa.binary()}
_INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
_TEXTS = st.builds(lambda word, times: word * times, _WORDS, st.sampled_from([0, 1, 1, 9, 700]))
_ROWS = st.lists(
    st.tuples(st.none() | _INTEGERS, st.none() | _TEXTS, st.none() | st.binary(max_size=200)),
    max_size=60,
)


def _made(path: Path, rows: Sequence[tuple[object, ...]], *before: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in before:
            db.execute(statement)
        db.execute("CREATE TABLE other (x)")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, number, text TEXT, unread, blob BLOB)")
        db.execute("BEGIN")
        insert = "INSERT INTO t (number, text, blob) VALUES (?, ?, ?)"
        for row in rows:
            db.execute(insert, row)
            db.execute("INSERT INTO other VALUES (zeroblob(300))")
        db.execute("COMMIT")
    return path


def _asked(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT number, text, blob, id FROM t").fetchall()
    return [(a, b or "", c or b"", d) for a, b, c, d in rows]


def _taken(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
        places = {row[1]: row[0] for row in db.execute("PRAGMA table_info(t)")}
    picks = [Pick(places[name], kind) for name, kind in _TYPES.items()]
    picks.append(Pick(places["id"], pa.int64(), is_row_id=True))
    chunks = [[array.to_pylist() for array in arrays] for arrays in batches(path, root, picks)]
    return [row for columns in chunks for row in zip(*columns, strict=True)]


# --- what exporters write -----------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(rows=_ROWS, page_bytes=st.sampled_from([512, 1024, 4096, 65536]))
def test_rows_are_those_of_sqlite(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]], page_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("pages") / "t.sqlite"
    _made(path, rows, f"PRAGMA page_size = {page_bytes}")
    assert _taken(path) == _asked(path)


@pytest.fixture(scope="module")
def rows() -> list[tuple[object, ...]]:
    return [
        ((-1) ** row * 7**row % 2**62 - 2**61 if row % 5 else None, f"text {row}" * (row % 40), b"")
        for row in range(3000)
    ]


@pytest.mark.parametrize(
    ("setting", "statements"),
    [
        # gaps and freed pages, also with rows out of order within a page
        ("", ["DELETE FROM t WHERE id % 3 = 1"]),
        ("", ["DELETE FROM t WHERE id > 20", "INSERT INTO t (number) VALUES (1)"]),
        ("", ["DELETE FROM t"]),
        ("", ["UPDATE t SET text = text || 'longer' WHERE id % 7 = 0"]),
        ("", ["UPDATE t SET id = id + 1099511627776"]),
        ("", ["CREATE INDEX i ON t (number)", "UPDATE t SET number = id"]),
        ("", ["ALTER TABLE t DROP COLUMN unread"]),
        # overflow, interior and pointer-map pages, and a log that has been applied
        ("auto_vacuum = FULL", []),
        ("page_size = 512", []),
        ("journal_mode = WAL", []),
    ],
    ids=str,
)
def test_a_file_with_pages_of_every_sort(
    tmp_path: Path, rows: list[tuple[object, ...]], setting: str, statements: list[str]
) -> None:
    made = _made(tmp_path / "t.sqlite", rows, *([f"PRAGMA {setting}"] if setting else []))
    path = sql(made, *statements)
    assert _taken(path) == _asked(path)


@pytest.mark.slow
def test_the_chunk_size_does_not_change_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[object, ...]]
) -> None:
    path = _made(tmp_path / "t.sqlite", rows, "PRAGMA page_size = 1024")
    monkeypatch.setattr(pages, "_CHUNK_BYTES", 3 * 1024)
    assert _taken(path) == _asked(path)


# --- what is left to SQLite -------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET number = 1.5 WHERE id = 2000",
        "UPDATE t SET number = 'one' WHERE id = 2000",
        "UPDATE t SET text = x'00' WHERE id = 2000",
        "UPDATE t SET blob = 5 WHERE id = 2000",
        "ALTER TABLE t ADD COLUMN more DEFAULT 5",
        "INSERT INTO t (id) VALUES (-1)",
    ],
)
def test_a_value_that_is_not_plain(
    tmp_path: Path, rows: list[tuple[object, ...]], statement: str
) -> None:
    """Another type, a default that is not stored, or a row id of nine bytes."""
    path = sql(_made(tmp_path / "t.sqlite", rows), statement)
    if "ALTER" in statement:
        sql(path, "ALTER TABLE t RENAME COLUMN number TO old")
        sql(path, "ALTER TABLE t RENAME COLUMN more TO number")
    with pytest.raises(NotPlainError):
        _taken(path)


def test_a_log_that_is_not_applied(tmp_path: Path, rows: list[tuple[object, ...]]) -> None:
    """Its rows are not in the main file."""
    path = _made(tmp_path / "t.sqlite", rows, "PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM t")
        db.commit()
        with pytest.raises(NotPlainError):
            _taken(path)


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_texts_of_another_encoding(tmp_path: Path, encoding: str) -> None:
    path = _made(tmp_path / "t.sqlite", [(1, "a", b"")], f"PRAGMA encoding = '{encoding}'")
    with pytest.raises(NotPlainError):
        _taken(path)


def test_a_table_without_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    sql(path, "CREATE TABLE t (id PRIMARY KEY, number, text, blob) WITHOUT ROWID")
    with pytest.raises(NotPlainError):
        _taken(path)


# --- damage -------------------------------------------------------------------------------------


def _answers(path: Path) -> Iterator[list[tuple[object, ...]] | None]:
    """Return what the pages hold, and what SQLite says; None if they cannot be read."""
    try:
        yield _taken(path)
    except (NotPlainError, UnicodeDecodeError, sqlite3.Error):  # the last by the probe
        yield None
    try:
        yield _asked(path)
    except (sqlite3.Error, UnicodeDecodeError):
        yield None


_PAGE_BYTES = 512
_FLIP = st.tuples(st.integers(2 * _PAGE_BYTES, 60_000), st.integers(0, 255))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[object, ...]]) -> Path:
    path = tmp_path_factory.mktemp("damaged") / "good.sqlite"
    return _made(path, rows[:200], f"PRAGMA page_size = {_PAGE_BYTES}")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(flips=st.lists(_FLIP, min_size=1, max_size=5), end=st.none() | st.integers(1024, 60_000))
def test_damage_is_never_read_as_something_else(
    good: Path, flips: list[tuple[int, int]], end: int | None
) -> None:
    """If both read a damaged file, they agree; only NotPlainError is raised."""
    damaged = bytearray(good.read_bytes())
    for at, byte in flips:
        damaged[at % len(damaged)] = byte
    path = good.with_name("damaged.sqlite")
    path.write_bytes(damaged[:end])
    taken, asked = _answers(path)
    assert taken is None or asked is None or taken == asked
