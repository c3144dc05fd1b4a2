"""Reads SQLite tables as Arrow columns: by name, only columns that exist, never writing."""

from __future__ import annotations

import os
import sqlite3
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import adbc_driver_sqlite
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import AdbcConnection, AdbcStatement
from adbc_driver_manager import Error as AdbcError

from pyprof.arrays import ints, texts_by_index
from pyprof.errors import CaptureError, reason
from pyprof.marker import templates
from pyprof.process.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyprof.arrays import Int64Array

_BATCH_ROWS = 1 << 15
"""Rows fetched at once."""
_ROW_BYTES = 4
"""The minimum size of a row: its offset in the page, its length, its id."""


class Numbered:
    """The type of a column of texts that are split into templates as they are read."""


class Database:
    """One SQLite file, opened read-only. Raises CaptureError if anything is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.resolve()  # a log is next to the file itself, not to a link
        # Only what is stored: a view, a virtual table or a generated column is a program, which may
        # never end.
        query = (
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND m.rootpage > 0"
        )
        self._columns: dict[str, set[str]] = defaultdict(set)
        for table, column in self._probe(query):
            self._columns[table].add(column)

    def tables(self) -> frozenset[str]:
        """Return the names of tables; tools omit those without rows."""
        return frozenset(self._columns)

    def columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; () if it does not exist."""
        return frozenset(self._columns.get(table, ()))

    def require(self, table: str, *columns: str) -> None:
        """Raise CaptureError if a table has rows but lacks some of these columns."""
        missing = [name for name in columns if name not in self.columns(table)]
        if not missing or table not in self.tables():
            return
        if self._probe(f'SELECT 1 FROM "{table}" LIMIT 1'):  # noqa: S608 - as probed
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
        return _shape_batches(self._batches(table, there), columns, piece)

    def _probe(self, query: str) -> list[tuple[Any, ...]]:
        """Return the few rows of a query. Raises CaptureError for a file that SQLite refuses."""
        uri, before = _connection(self._file)
        try:
            with closing(sqlite3.connect(uri, uri=True)) as db:
                for statement in before:
                    db.execute(statement)
                return db.execute(query).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._damage_error(error) from None

    def _batches(self, table: str, columns: Mapping[str, type]) -> Iterator[pa.RecordBatch]:
        """Read a table; SQLite converts each value to the type wanted, or NULL."""
        select = ", ".join(_expression(name, kind) for name, kind in columns.items())
        rows = 0
        try:
            stored_bytes = self._file.stat().st_size
            with suppress(OSError):
                stored_bytes += sqlite_companion(self._file, WAL).stat().st_size
            for batch in _query(self._file, f'SELECT {select} FROM "{table}"'):  # noqa: S608 - as probed
                rows += batch.num_rows
                if rows > stored_bytes // _ROW_BYTES:  # if pages contain each other
                    break
                yield _cast_columns(batch, columns)
            else:
                return
        except (AdbcError, OSError) as error:
            raise self._damage_error(error) from None
        raise self._damage_error(OSError("more rows than the file has room for"))

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


def _connection(file: Path) -> tuple[str, Sequence[str]]:
    """Return how to open a database without a write to it or next to it: a URI, and statements."""
    # as_uri percent-encodes "?", "#", "%". SQLite with mode=ro leaves a database with a log alone,
    # but creates files next to it, and fails in read-only folders; immutable=1 avoids both.
    uri = f"{file.as_uri()}?mode=ro"
    header = b""
    with suppress(OSError), file.open("rb") as stream:
        header = stream.read(_VERSIONS.stop)
    has_log = header[_VERSIONS] == _WRITE_AHEAD
    if not has_log or sqlite_companion(file, INDEX).exists():  # SQLite writes nothing, or wrote it
        return uri, ()
    if not sqlite_companion(file, WAL).exists():  # safe: no program is writing
        return f"{uri}&immutable=1", ()
    if os.name != "posix":
        return uri, ()
    # SQLite creates the index of a log next to it, and leaves it there, unless it has an exclusive
    # lock: then the index is in memory. A lock needs a writable file, or the VFS without locks.
    return f"{uri}&vfs=unix-none", ("PRAGMA locking_mode = exclusive",)


def _query(file: Path, query: str) -> Iterator[pa.RecordBatch]:
    uri, before = _connection(file)
    with (
        adbc_driver_sqlite.connect(uri) as database,
        AdbcConnection(database) as connection,
        AdbcStatement(connection) as statement,
    ):
        for each in before:
            statement.set_sql_query(each)
            statement.execute_update()
        statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)})
        statement.set_sql_query(query)
        stream, _ = statement.execute_query()
        with pa.RecordBatchReader.from_stream(stream) as reader:
            yield from reader


WAL, INDEX = "-wal", "-shm"
"""Suffixes of files next to a database: the log, and its index."""


def sqlite_companion(file: Path, ending: str) -> Path:
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
        return f'coalesce(CAST("{name}" AS REAL), {_NO_FLOAT})'
    if kind is bytes:
        return f"CAST(coalesce(\"{name}\", x'') AS BLOB)"
    return f"CAST(coalesce(\"{name}\", '') AS TEXT)"


_STRICT = frozenset({"start", "end", "timestamp", "correlationId", "value"})
"""Columns in which values that are not numbers must not become 0, as with SQLite's CAST."""
_WHOLE = (
    """CASE typeof("{name}") WHEN 'integer' THEN "{name}" """
    """WHEN 'real' THEN iif(abs("{name}") < 9.2e18, CAST("{name}" AS INTEGER), NULL) """
    """WHEN 'null' THEN NULL """
    """ELSE iif(CAST(CAST("{name}" AS INTEGER) AS TEXT) = CAST("{name}" AS TEXT), """
    """CAST("{name}" AS INTEGER), NULL) END"""
)
"""As CAST, but NULL for what is not a whole number of 64 bits."""

_ARROW = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    Numbered: pa.string(),
}


_NO_FLOAT = "9e999"
"""Infinity, for NULL: the type of a column whose first values are NULL would be int64."""


def _cast_columns(batch: pa.RecordBatch, columns: Mapping[str, type]) -> pa.RecordBatch:
    """Return a batch with the names and types that were asked for."""
    arrays = [
        pc.replace_with_mask(column, pc.is_inf(column), pa.scalar(None, column.type))
        if kind is float
        else column
        for column, kind in zip(batch.columns, columns.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, [*columns])


def _shape_batches(
    batches: Iterator[pa.RecordBatch],
    columns: Mapping[str, type],
    piece: Callable[[pa.Table], pa.Table],
) -> pa.Table:
    """Shape some rows while the next are read: both release the GIL."""
    tables, held, most = [], 0, _HELD_BYTES
    with thread_pool(1) as pool:
        shaped = pool.submit(_shape, None, columns)
        for batch in batches:
            tables.append(piece(shaped.result()))
            shaped = pool.submit(_shape, batch, columns)
            held += _text_bytes(tables[-1])
            if held > most:  # batches repeat each other's texts
                tables = [_combine(tables)]
                held, most = 0, max(_HELD_BYTES, _TIMES * _text_bytes(tables[0]))
        tables.append(piece(shaped.result()))
    return _combine(tables)


_HELD_BYTES = 1 << 26
"""Bytes of texts of batches that are kept before equal ones are unified."""
_TIMES = 2
"""Factor by which they must outgrow the unified ones before the next time."""


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
            shaped |= templates.columns(texts)
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
        index = np.searchsorted(self._ids, ids).clip(max=len(self._ids) - 1)
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
    nothing = pa.table(templates.columns(pa.array([""])))
    texts = pa.concat_tables([rows.drop_columns([key]), nothing])
    return Strings(texts.unify_dictionaries().combine_chunks(), ids, valid[index])
