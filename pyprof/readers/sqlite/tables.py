"""Reads SQLite tables as Arrow columns: by name, only columns that exist, never writing."""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import ints, texts_by_index
from pyprof.errors import CaptureError, reason
from pyprof.marker import templates
from pyprof.process.threads import thread_pool
from pyprof.readers.sqlite import pages
from pyprof.readers.sqlite.pages import NotPlainError, Pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

    from pyprof.arrays import Int64Array

_BATCH_ROWS = 1 << 14
"""Rows fetched at once."""
_AHEAD = 1
"""Batches that reading may be ahead of shaping."""

_ROW_BYTES = 4
"""The minimum size of a row: its offset in the page, its length, its id."""


class Numbered:
    """The type of a column of texts that are split into templates as they are read."""


class _Column(NamedTuple):
    """A column as the schema declares it."""

    name: str
    position: int
    hidden: int
    """Not 0 if it is computed, or of a virtual table."""
    key: int
    """Its position in the primary key, from 1; 0 if it is not part of it."""
    type: str


class _Table(NamedTuple):
    """Where a table begins in the file, and its columns by name."""

    root: int
    has_key_index: bool
    """The primary key has an index of its own, so no column of it is the row id."""
    columns: dict[str, _Column]

    def picks(self, columns: Mapping[str, type]) -> list[Pick]:
        """Return how pages store some columns. Raises NotPlainError if they do not store all."""
        if any(column.hidden for column in self.columns.values()):
            raise NotPlainError
        key_columns = sum(column.key > 0 for column in self.columns.values())
        may_be_row_id = key_columns == 1 and not self.has_key_index
        return [
            Pick(
                position, _ARROW[kind], may_be_row_id and key > 0 and declared.upper() == "INTEGER"
            )
            for name, kind in columns.items()
            for _, position, _, key, declared in [self.columns[name]]
        ]


class Database:
    """One SQLite file, opened read-only. Raises CaptureError if anything is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.resolve()  # a log is next to the file itself, not to a link
        # Only what is stored: a view, a virtual table or a generated column is a program, which may
        # never end.
        query = (
            "SELECT m.name, CAST(m.rootpage AS INTEGER), "
            "EXISTS (SELECT 1 FROM pragma_index_list(m.name) i WHERE i.origin = 'pk'), "
            "c.name, c.cid, c.hidden, c.pk, c.type "
            "FROM sqlite_master m, pragma_table_xinfo(m.name) c "
            "WHERE m.type = 'table' AND m.rootpage > 0"
        )
        tables: dict[str, _Table] = {}
        try:
            with closing(_connect(self._file)) as db:
                for name, root, has_key_index, *described in db.execute(query):
                    column = _Column(*described)
                    table = tables.setdefault(str(name), _Table(root, bool(has_key_index), {}))
                    table.columns[column.name] = column
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._damage_error(error) from None
        self._tables = tables

    def tables(self) -> frozenset[str]:
        """Return the names of tables; tools omit those without rows."""
        return frozenset(self._tables)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; () if it does not exist."""
        there = self._tables[table].columns if table in self._tables else {}
        return frozenset(name for name, column in there.items() if not column.hidden)

    def require(self, table: str, *columns: str) -> None:
        """Raise CaptureError if a table has rows but lacks some of these columns."""
        missing = [name for name in columns if name not in self.columns(table)]
        if not missing or table not in self.tables():
            return
        try:
            with closing(_connect(self._file)) as db:
                first_row = db.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchone()  # noqa: S608
        except sqlite3.Error as error:
            raise self._damage_error(error) from None
        if first_row is not None:
            raise CaptureError(
                f"{self.path}: {table} has no column {missing[0]!r}, which is required; "
                "the file was changed: export it again"
            )

    def read(
        self,
        table: str,
        columns: Mapping[str, type],
        piece: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> pa.Table:
        """Read some columns of a table. A missing column or table is all null.

        `columns` maps each name to `int`, `float`, `str` or `bytes`, which become int64, float64,
        string and binary, or to `Numbered`, which becomes the columns of `templates.NUMBERED`.
        `piece` is called with some rows at a time, in order, and returns those to keep.
        """
        there = {name: kind for name, kind in columns.items() if name in self.columns(table)}
        if not there:
            return piece(_shape(None, columns))
        described = self._tables[table]
        if float in there.values():
            return _shape_batches(self._read_converted(table, there), columns, piece)
        with suppress(NotPlainError):
            chunks = pages.batches(self._file, described.root, described.picks(there))
            batches = (pa.RecordBatch.from_arrays(arrays, [*there]) for arrays in chunks)
            return _shape_batches(batches, columns, piece)
        return _shape_batches(self._read_converted(table, there), columns, piece)

    def _read_converted(self, table: str, columns: Mapping[str, type]) -> Iterator[pa.RecordBatch]:
        """Read any file; SQLite converts each value to the type wanted, or NULL."""
        select = ", ".join(_expression(name, kind) for name, kind in columns.items())
        types = [_ARROW[kind] for kind in columns.values()]
        rows = 0
        try:
            with closing(_connect(self._file)) as db:
                db.text_factory = lambda text: text.decode(errors="replace")
                cursor = db.execute(f'SELECT {select} FROM "{table}"')  # noqa: S608 - as probed
                while batch := cursor.fetchmany(_BATCH_ROWS):
                    rows += len(batch)
                    if rows > self._most_rows:  # if pages contain each other
                        raise sqlite3.DatabaseError("more rows than the file has room for")
                    yield pa.RecordBatch.from_arrays(
                        [*map(pa.array, zip(*batch, strict=True), types)], [*columns]
                    )
        except sqlite3.Error as error:
            raise self._damage_error(error) from None

    @property
    def _most_rows(self) -> int:
        """Return how many rows fit into the file and its log."""
        stored_bytes = self._file.stat().st_size
        with suppress(OSError):
            stored_bytes += beside(self._file, WAL).stat().st_size
        return stored_bytes // _ROW_BYTES

    def _damage_error(self, error: Exception) -> CaptureError:
        if "locked" in str(error):
            return CaptureError(f"{self.path}: a program is writing to it; try again when it ends")
        again = "export or capture it again"
        if self.path.suffix == ".sqlite":
            again = (
                "export it again, e.g. nsys export --type sqlite --force-overwrite true "
                "REPORT.nsys-rep"
            )
        return CaptureError(
            f"{self.path}: the SQLite file is damaged or truncated ({reason(error)}); {again}"
        )


def _connect(file: Path) -> sqlite3.Connection:
    """Open a database; write neither to it nor next to it."""
    # as_uri percent-encodes "?", "#", "%". SQLite with mode=ro leaves a database with a log alone,
    # but creates files next to it, and fails in read-only folders; immutable=1 avoids both.
    uri = f"{file.as_uri()}?mode=ro"
    header = b""
    with suppress(OSError), file.open("rb") as stream:
        header = stream.read(_VERSIONS.stop)
    has_log = header[_VERSIONS] == _WRITE_AHEAD
    if not has_log or beside(file, INDEX).exists():  # SQLite writes nothing, or wrote it
        return sqlite3.connect(uri, uri=True)
    if not beside(file, WAL).exists():  # safe: no program is writing
        return sqlite3.connect(f"{uri}&immutable=1", uri=True)
    if os.name != "posix":
        return sqlite3.connect(uri, uri=True)
    # SQLite creates the index of a log next to it, and leaves it there, unless it has an exclusive
    # lock: then the index is in memory. A lock needs a writable file, or the VFS without locks.
    base = sqlite3.connect(f"{uri}&vfs=unix-none", uri=True)
    base.execute("PRAGMA locking_mode = exclusive")
    return base


WAL, INDEX, JOURNAL = "-wal", "-shm", "-journal"
"""Suffixes of files next to a database: the log, the index of the log, the rollback journal."""


def beside(file: Path, ending: str) -> Path:
    """Return the path of a file that SQLite keeps next to a database; `file` must be no link."""
    return file.with_name(f"{file.name}{ending}")


_WRITE_AHEAD = b"\2\2"
_VERSIONS = slice(18, 20)
"""In the header: the versions for writing and reading, 2 with a write-ahead log."""


def _expression(name: str, kind: type) -> str:
    """Return the SQL that converts a column, whatever its values."""
    if kind is int and name in _STRICT:
        return _WHOLE.format(name=name)
    if kind is int:
        return f'CAST("{name}" AS INTEGER)'
    if kind is float:
        return f'CAST("{name}" AS REAL)'
    if kind is bytes:
        return f"CAST(coalesce(\"{name}\", x'') AS BLOB)"
    return f"CAST(coalesce(\"{name}\", '') AS TEXT)"


_STRICT = frozenset({"start", "end", "timestamp", "correlationId", "value"})
"""Columns in which values that are no numbers must not become 0, as with SQLite's CAST."""
_WHOLE = (
    """CASE typeof("{name}") WHEN 'integer' THEN "{name}" """
    """WHEN 'real' THEN iif(abs("{name}") < 9.2e18, CAST("{name}" AS INTEGER), NULL) """
    """WHEN 'null' THEN NULL """
    """ELSE iif(CAST(CAST("{name}" AS INTEGER) AS TEXT) = CAST("{name}" AS TEXT), """
    """CAST("{name}" AS INTEGER), NULL) END"""
)

_ARROW = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    Numbered: pa.string(),
}


def _shape_batches(
    batches: Iterator[pa.RecordBatch],
    columns: Mapping[str, type],
    piece: Callable[[pa.Table], pa.Table],
) -> pa.Table:
    """Shape some rows while the next are read: both release the GIL."""
    tables = [piece(_shape(None, columns))]
    held, most = 0, _HELD_BYTES
    with thread_pool(1) as pool:
        pending: deque[Future[pa.Table]] = deque()
        for batch in chain(batches, [None] * _AHEAD):
            if batch is not None:
                pending.append(pool.submit(_shape, batch, columns))
            if pending and (batch is None or len(pending) > _AHEAD):  # so that memory stays bounded
                tables.append(piece(pending.popleft().result()))
                held += _text_bytes(tables[-1])
            if held > most:  # pages of long texts have few rows, and repeat texts
                tables = [_combine(tables)]
                held, most = 0, max(_HELD_BYTES, _TIMES * _text_bytes(tables[0]))
    return _combine(tables)


_HELD_BYTES = 1 << 26
"""Bytes of texts of batches that are kept before equal ones are unified."""
_TIMES = 2
"""Factor by which they must grow, relative to the unified ones, before the next time."""


def _text_bytes(rows: pa.Table) -> int:
    coded = (column for column in rows.columns if pa.types.is_dictionary(column.type))
    return sum(chunk.dictionary.nbytes for column in coded for chunk in column.chunks)


def _combine(tables: list[pa.Table]) -> pa.Table:
    """Concatenate tables, each column into one chunk; the list of tables is emptied."""
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    tables.clear()
    combined: dict[str, pa.ChunkedArray] = {}
    for name in table.column_names:  # one by one, so that there are never two copies of all
        combined[name] = pa.chunked_array([table.column(name).combine_chunks()])
        table = table.drop_columns([name])
    return pa.table(combined)


def _shape(batch: pa.RecordBatch | None, columns: Mapping[str, type]) -> pa.Table:
    """Return all columns wanted; null for those that are missing."""
    rows = batch.num_rows if batch is not None else 0
    there = dict(zip(batch.schema.names, batch.columns, strict=True)) if batch is not None else {}
    shaped: dict[str, pa.Array] = {}
    for name, kind in columns.items():
        column = there.get(name)
        if kind is Numbered:
            texts = pa.repeat("", rows) if column is None else _valid_text(column)
            shaped |= dict(zip(templates.NAMES, templates.split(texts).flatten(), strict=True))
        elif column is None:
            shaped[name] = pa.nulls(rows, _ARROW[kind])
        else:
            shaped[name] = _valid_text(column) if kind is str else column
    return pa.table(shaped)


def _valid_text(column: pa.Array) -> pa.Array:
    """Replace invalid UTF-8: SQLite does not check, and Arrow's text functions rely on it."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.binary()).to_pylist()
        return pa.array([text.decode(errors="replace") for text in raw], pa.string())
    return column


@dataclass(frozen=True, slots=True)
class Strings:
    """All strings of a capture. Names are decoded on request, the texts of ranges never."""

    texts: pa.Table
    """The columns of `templates.NUMBERED`; the last row is the empty text."""
    _ids: Int64Array
    """Ascending, without duplicates."""
    _row: Int64Array
    """The row of `texts` of each id."""

    def rows(self, ids: Int64Array) -> Int64Array:
        """Return the row of `texts` of each id; the last for an unknown id."""
        unknown = self.texts.num_rows - 1
        if not len(self._ids):
            return np.full(len(ids), unknown)
        index = ids - self._ids[0]  # nearly always they count up, without gaps
        if self._ids[-1] - self._ids[0] != len(self._ids) - 1:
            index = np.searchsorted(self._ids, ids)
        index = np.clip(index, 0, len(self._ids) - 1)
        return np.asarray(np.where(self._ids[index] == ids, self._row[index], unknown))

    def starting(self, prefix: str) -> Int64Array:
        """Return the ids of the strings with this prefix."""
        text = self.texts.column("text").combine_chunks()
        ours = pc.fill_null(pc.starts_with(text.dictionary, prefix), fill_value=False)
        return np.asarray(self._ids[np.append(ours, [False])[text.indices][self._row]])

    def names(self, ids: Int64Array, missing: str) -> pa.DictionaryArray:
        """Look up names by ids, as a dictionary column; `missing` for an unknown id."""
        row = self.rows(ids)
        used = np.flatnonzero(np.bincount(row, minlength=self.texts.num_rows))
        index = np.zeros(self.texts.num_rows, np.int32)
        index[used] = np.arange(len(used))
        names = templates.spell(
            templates.texts_of_table(self.texts.take(pa.array(used)))
        ).to_pylist()
        if len(used) and used[-1] == self.texts.num_rows - 1:
            names[-1] = missing
        return texts_by_index(index[row], names)


def read(db: Database, table: str, key: str, value: str) -> Strings:
    """Read a table of strings; empty if it does not exist."""
    return of_rows(db.read(table, {key: int, value: Numbered}), key)


def of_rows(rows: pa.Table, key: str) -> Strings:
    """Return the strings of a table with their ids, `key`, and the columns of `Numbered`."""
    keys = ints(rows.column(key), -1)
    valid = np.flatnonzero(keys >= 0)[::-1]  # if several strings have the same id, the last counts
    ids, index = np.unique(keys[valid], return_index=True)
    nothing = pa.RecordBatch.from_struct_array(templates.split(pa.array([""])))
    texts = pa.concat_tables([rows.drop_columns([key]), pa.Table.from_batches([nothing])])
    return Strings(texts.unify_dictionaries().combine_chunks(), ids, valid[index])
