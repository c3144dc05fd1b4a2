"""SQLite tables as Arrow columns: read-only, by name, only the columns that are there."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager import Error as AdbcError
from adbc_driver_manager import NotSupportedError
from adbc_driver_sqlite import dbapi

from pyprof.errors import CaptureError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = b"SQLite format 3\0"

ABSENT = -(2**63)
"""Stands for NULL in integer columns on the way through SQLite; becomes a null in Arrow.

The driver guesses a column's type from its first rows, so no NULL may reach it.
"""

_BATCH_ROWS = 1 << 16
_COPIED_BATCHES = 16


class Database:
    """One SQLite file, opened read-only. Raises CaptureError for anything that is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._uri = _uri(path)
        self._columns = self._probe()

    def _probe(self) -> dict[str, frozenset[str]]:
        query = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c"
        try:
            with closing(sqlite3.connect(self._uri, uri=True)) as db:
                found: dict[str, set[str]] = {}
                for table, column in db.execute(query):
                    found.setdefault(str(table), set()).add(str(column))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._broken(error) from None
        return {table: frozenset(columns) for table, columns in found.items()}

    def tables(self) -> frozenset[str]:
        """Name the tables that exist; tools leave out those without rows."""
        return frozenset(self._columns)

    def columns(self, table: str) -> frozenset[str]:
        """Name the columns of a table; none where it does not exist."""
        return self._columns.get(table, frozenset())

    def read(self, table: str, columns: Mapping[str, type], where: str = "") -> pa.Table:
        """Read some columns of a table. A column or table that does not exist is all null.

        `columns` maps each name to `int`, `str` or `bytes`, which become int64, string and binary.
        """
        there = {name: kind for name, kind in columns.items() if name in self.columns(table)}
        if not there:
            return _shape(pa.table({}), columns)
        select = ", ".join(_expression(name, kind) for name, kind in there.items())
        query = f'SELECT {select} FROM "{table}" {where}'  # noqa: S608 - names are those probed
        return _shape(self._fetch(query), columns)

    def _fetch(self, query: str) -> pa.Table:
        try:
            with _opened(self._uri) as cursor:
                cursor.adbc_statement.set_options(
                    **{"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)}
                )
                cursor.execute(query)
                # Closed before its cursor, also when reading fails half-way.
                with cursor.fetch_record_batch() as reader:
                    return _copied(reader)
        except NotSupportedError:  # the driver takes Ctrl-C for itself, and cannot cancel
            raise KeyboardInterrupt from None
        except (AdbcError, pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
            raise self._broken(error) from None

    def strings(self, table: str, key: str, value: str) -> pa.Array:
        """Give a table of strings as one array, position = key; unused positions are null."""
        found = self.read(table, {key: int, value: str})
        keys = numbers(found.column(key), 0)
        values = found.column(value).combine_chunks()
        valid = (keys >= 0) & (keys < _MOST_STRINGS)
        slots: NDArray[np.int64] = np.full(int(keys[valid].max(initial=-1)) + 1, -1, np.int64)
        slots[keys[valid]] = np.flatnonzero(valid)
        return values.take(pa.array(slots, mask=slots < 0))

    def _broken(self, error: Exception) -> CaptureError:
        return CaptureError(
            f"{self.path}: the SQLite file is damaged or cut short ({reason(error)}); export it "
            f"again, e.g. nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"
        )


@contextmanager
def _opened(uri: str) -> Iterator[dbapi.Cursor]:
    """Open a cursor and close it, which a driver before 1.13 cannot do to a damaged file."""
    db = dbapi.connect(uri)
    cursor = db.cursor()
    try:
        yield cursor
    finally:
        _close(cursor)
        _close(db)


def _close(handle: dbapi.Cursor | dbapi.Connection) -> None:
    try:
        handle.close()
    except (AdbcError, RuntimeError):
        handle._closed = True  # noqa: SLF001 - else it tries again, and complains, at exit


_MOST_STRINGS = 1 << 28


def _uri(path: Path) -> str:
    # as_uri quotes what a URI must quote ("?", "#", "%"); mode=ro never writes, not even a journal.
    return path.resolve().as_uri() + "?mode=ro"


def _expression(name: str, kind: type) -> str:
    if kind is int:
        return f'CAST(coalesce("{name}", {ABSENT}) AS INTEGER) AS "{name}"'
    if kind is bytes:
        return f'CAST(coalesce("{name}", x\'\') AS BLOB) AS "{name}"'
    return f'CAST(coalesce("{name}", \'\') AS TEXT) AS "{name}"'


_ARROW = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}


def _copied(reader: pa.RecordBatchReader) -> pa.Table:
    """Copy what the driver hands over: of its batches, one column in use keeps all others."""
    tables, batches = [reader.schema.empty_table()], list[pa.RecordBatch]()
    for batch in reader:
        batches.append(batch)
        if len(batches) == _COPIED_BATCHES:
            tables.append(pa.Table.from_batches(batches).combine_chunks())
            batches.clear()
    if batches:
        tables.append(pa.Table.from_batches(batches).combine_chunks())
    return pa.concat_tables(tables)


def _shape(found: pa.Table, columns: Mapping[str, type]) -> pa.Table:
    shaped = {}
    for name, kind in columns.items():
        arrow = _ARROW[kind]
        if name not in found.column_names:
            shaped[name] = pa.chunked_array([pa.nulls(found.num_rows, arrow)], arrow)
        elif kind is int:
            shaped[name] = _with_nulls(found.column(name))
        elif kind is bytes:
            shaped[name] = _as_bytes(found.column(name))
        else:
            shaped[name] = _valid_text(found.column(name))
    return pa.table(shaped)


def _as_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # The driver calls a column of no rows int64, which Arrow does not cast to bytes.
    return column.cast(pa.binary()) if len(column) else pa.chunked_array([], pa.binary())


def _with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = column.cast(pa.int64())
    absent = pc.equal(column, ABSENT)
    if not pc.any(absent).as_py():
        return column
    return pc.if_else(absent, pa.scalar(None, pa.int64()), column)


def _valid_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace what is not UTF-8: SQLite does not check, Arrow's text functions rely on it."""
    column = column.cast(pa.string()) if column.type != pa.string() else column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.binary()).to_pylist()
        return pa.chunked_array(
            [pa.array([text.decode(errors="replace") for text in raw], pa.string())]
        )
    return column


def numbers(column: pa.ChunkedArray | pa.Array, absent: int) -> NDArray[np.int64]:
    """Give an integer column as NumPy, with `absent` for null."""
    if column.null_count:
        column = pc.fill_null(column, absent)
    return np.asarray(column.to_numpy(), np.int64)


def encoded(codes: NDArray[np.int64], values: pa.Array, missing: str) -> pa.DictionaryArray:
    """Look up names by their ids, as a dictionary column; `missing` for an id that is unknown."""
    known = (codes >= 0) & (codes < len(values))
    if len(values):
        known &= np.asarray(values.is_valid())[np.where(known, codes, 0)]
    used, inverse = np.unique(np.where(known, codes, -1), return_inverse=True)
    names = values.take(pa.array(used[used >= 0])).to_pylist()
    dictionary = ([missing] if len(used) and used[0] < 0 else []) + names
    return pa.DictionaryArray.from_arrays(
        pa.array(inverse.astype(np.int32)), pa.array(dictionary, pa.string())
    )
