"""Damage by structure: values, tokens, rows, schema and texts; and by bytes."""

import csv
import gzip
import io
import json
import pickle
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from copy import deepcopy
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.seeds import TEXTS

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 7, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**64,
    10**25, 0.5, -0.0, 1e308, -1e308, float("inf"), float("-inf"), float("nan"), "", " ", "0",
    "-1", "12345", "1.5", "1e5", "abc", "inf", "nan", "None", "é\u202e\x1b[31m", "\x00", "a" * 5000,
    "=1+1", "../../etc/passwd", "gone.py:0", "gone.py:-1", "x.py:99999999999999999999", "file:line",
    [], [1], [[]], [None], [[1, [2, [3]]]], {}, {"a": 1}, {"a": {"b": []}}, b"\xff\xfe", b"",
)  # fmt: skip
"""Values that no tool writes, or hardly ever."""

Damage: TypeAlias = Callable[[bytes, Random], bytes]


def flipped(data: bytes, rng: Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        found[rng.randrange(len(found))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(found)


def cut(data: bytes, rng: Random) -> bytes:
    """Remove, double, move or blank a slice."""
    if not data:
        return b"\0"
    start = rng.randrange(len(data))
    stop = min(len(data), start + rng.choice((1, 4, 16, 100, 4096, len(data))))
    stretch = data[start:stop]
    kind = rng.randrange(4)
    if kind == 0:
        return data[:start] + data[stop:]
    if kind == 1:
        return data[:stop] + stretch + data[stop:]
    if kind == 2:
        place = rng.randrange(len(data))
        return data[:place] + stretch + data[place:]
    return data[:start] + bytes(len(stretch)) + data[stop:]


def text(old: str, rng: Random) -> str:
    """Damage a text: a piece of it, a number in it, or put another in its place."""
    kind = rng.randrange(5)
    start = rng.randrange(len(old) + 1)
    if kind == 0:
        return old[:start] + old[start + rng.randrange(8) :]
    if kind == 1:
        return old[:start] + str(rng.choice(ODD)) + old[start:]
    if kind == 2:
        return rng.choice(TEXTS)
    if kind == 3:
        return _renumbered(old, rng)
    return old + rng.choice((", seq = ", ", op_id = 3", ", sizes = [[", "]" * 300, "[" * 300, "'}"))


_NUMBERS = ("0", "-1", "9223372036854775807", "9223372036854775808", "1" * 40, "1" * 5000, "1.5")


def _renumbered(old: str, rng: Random) -> str:
    places = [place for place, character in enumerate(old) if character.isdigit()]
    if not places:
        return old
    place = rng.choice(places)
    return old[:place] + rng.choice(_NUMBERS) + old[place + 1 :]


# --- JSON ---------------------------------------------------------------------------------------


def tokens(data: bytes, rng: Random) -> bytes:
    """Change values of a JSON text in place; other content is damaged as bytes."""
    try:
        whole = json.loads(data)
    except ValueError:
        return cut(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        _change(whole, rng)
    return json.dumps(whole, default=str).encode(errors="replace")


def _change(value: Any, rng: Random) -> None:  # noqa: ANN401 - JSON
    while True:
        keys = _keys(value)
        if not keys:
            return
        key = rng.choice(keys)
        if not _keys(value[key]) or rng.random() < 0.1:
            _replace(value, key, rng)
            return
        value = value[key]


def _keys(value: Any) -> list[Any]:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return list(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _replace(value: Any, key: Any, rng: Random) -> None:  # noqa: ANN401 - as above
    kind = rng.randrange(6)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, list):
        value.insert(key, value[rng.randrange(len(value))])
    elif kind == 2 and isinstance(value, dict):
        value[text(str(key), rng)] = value.pop(key)
    elif isinstance(value[key], str) and kind < 5:
        value[key] = text(value[key], rng)
    elif isinstance(value[key], (int, float)) and kind == 3:
        value[key] = rng.choice((-value[key], str(value[key]), value[key] * 1000, value[key] + 0.5))
    else:
        value[key] = deepcopy(rng.choice(ODD))  # a copy, since it may be changed later


def zipped(data: bytes, rng: Random) -> bytes:
    """Damage the content of a gzip file, and compress it again."""
    whole = gzip.decompress(data)
    return gzip.compress(rng.choice((tokens, flipped, cut))(whole, rng), mtime=0)


def lines(data: bytes, rng: Random) -> bytes:
    """Damage some of the lines, each as JSON or, where it is none, as a text."""
    found = data.splitlines()
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(found))
        kind = rng.randrange(8)
        if kind == 0:
            del found[place]
        elif kind == 1:
            found.insert(place, rng.choice((b"", b"{}", b"[]", b"null", b"{" * 300, found[0])))
        elif kind == 2 or found[place].startswith(b"{'"):
            found[place] = text(found[place].decode(), rng).encode(errors="replace")
        else:
            found[place] = tokens(found[place], rng)
        found = found or [b""]
    return b"\n".join(found) + b"\n"


# --- SQLite -------------------------------------------------------------------------------------


def rows(data: bytes, rng: Random) -> bytes:
    """Change values, rows, columns and tables of an SQLite file through SQLite."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.sqlite"
        path.write_bytes(data)
        with closing(sqlite3.connect(path)) as db:
            db.text_factory = bytes
            for _ in range(rng.choice((1, 1, 2, 5))):
                with suppress(sqlite3.Error, OverflowError, IndexError):  # nothing to change
                    rng.choice(_SQL)(db, rng)
                    db.commit()
        return path.read_bytes()


def _tables(db: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    return [_text(row[0]) for row in db.execute(query)]


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [_text(row[1]) for row in db.execute(f'PRAGMA table_info("{table}")')]


def _set_value(db: sqlite3.Connection, rng: Random) -> None:
    table = rng.choice(_tables(db))
    column = rng.choice(_columns(db, table))
    where = rng.choice(("", "WHERE rowid = 1", "WHERE rowid % 2", "WHERE rowid % 5 = 0"))
    value = rng.choice(ODD)
    if isinstance(value, (list, dict)):
        value = str(value)
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)
    db.execute(f'UPDATE "{table}" SET "{column}" = ? {where}', (value,))  # noqa: S608


def _set_text(db: sqlite3.Connection, rng: Random) -> None:
    named = (("NVTX_EVENTS", "text"), ("StringIds", "value"), ("StringTable", "value"))
    table, column = rng.choice(named)
    if table not in _tables(db):  # or an endless view by now
        return
    query = f'SELECT rowid, "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL'  # noqa: S608
    number, old = rng.choice(db.execute(query).fetchall())
    new = text(_text(old), rng).encode(errors="replace")
    spelt = f"CAST(? AS {rng.choice(('TEXT', 'TEXT', 'BLOB'))})"
    db.execute(f'UPDATE "{table}" SET "{column}" = {spelt} WHERE rowid = ?', (new, number))  # noqa: S608


def _alter(db: sqlite3.Connection, rng: Random) -> None:
    """Drop, rename, double or delete: a table, a column, or some rows."""
    table = rng.choice(_tables(db))
    column = rng.choice(_columns(db, table))
    more = rng.choice((f"{table}_V2", f"{table}_V9", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL"))
    statements = (
        f'DROP TABLE "{table}"',
        f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
        f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column.upper()}_"',
        f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT {rng.randrange(1, 9)}',  # noqa: S608
        f'DELETE FROM "{table}" WHERE {rng.choice(("rowid = 1", "rowid % 2", "1"))}',  # noqa: S608
        f'CREATE TABLE "{more}" AS SELECT * FROM "{table}"',  # noqa: S608
    )
    db.execute(rng.choice(statements))


def _as_view(db: sqlite3.Connection, rng: Random) -> None:
    table = rng.choice(_tables(db))
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    db.execute(f'ALTER TABLE "{table}" RENAME TO "old_{table}"')
    db.execute(f'CREATE VIEW "{table}" AS {endless} SELECT o.* FROM n, "old_{table}" o')  # noqa: S608


_SQL = (*(_set_value,) * 6, *(_set_text,) * 4, *(_alter,) * 6, _as_view)

# --- Parquet ------------------------------------------------------------------------------------


def columns(data: bytes, rng: Random) -> bytes:
    """Change, retype, drop or empty columns of a Parquet file, or what its footer says."""
    table = pq.read_table(pa.BufferReader(data))
    for _ in range(rng.choice((1, 1, 2, 5))):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            table = _change_column(table, rng.randrange(table.num_columns), rng)
    metadata = {**(table.schema.metadata or {})}
    if rng.random() < 0.2:
        metadata[b"pyprof.devices"] = rng.choice((b"", b"{", b"[1]", b"null", b'[{"device": "x"}]'))
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return bytes(sink.getvalue())


def _change_column(table: pa.Table, place: int, rng: Random) -> pa.Table:
    name, column = table.column_names[place], table.column(place)
    kind = rng.randrange(5)
    if kind == 0:
        return table.drop_columns([name])
    if kind == 1:
        return table.set_column(place, name, pa.nulls(table.num_rows, column.type))
    if kind == 2:
        retyped = rng.choice((pa.string(), pa.float64(), pa.int32(), pa.bool_(), pa.binary()))
        return table.set_column(place, name, pa.nulls(table.num_rows, retyped))
    if kind == 3:
        return table.slice(0, rng.randrange(table.num_rows + 1))
    values = column.to_pylist()
    values[rng.randrange(len(values))] = _value_like(column.type, rng)
    return table.set_column(place, name, pa.array(values, column.type))


def _value_like(kind: pa.DataType, rng: Random) -> Any:  # noqa: ANN401 - any
    if pa.types.is_list(kind):
        return rng.choice((None, [], [None], [_value_like(kind.value_type, rng)] * 3))
    if pa.types.is_string(kind):
        return rng.choice((None, "", text(rng.choice(TEXTS), rng), str(rng.choice(ODD))))
    return rng.choice((None, 0, -1, 2**31, 2**62, 2**63 - 1, -(2**63)))


# --- pickles --------------------------------------------------------------------------------------

_OPCODES = (
    b"cos\nsystem\n(S'true'\ntR", b"c__builtin__\neval\n", b"]r\xff\xff\xff\x7f", b"h\x00",
    b"h\xff", b"j\xff\xff\xff\xff", b"2" * 500, b"]" * 500, b")" + b"\x85" * 500, b"0", b"1", b"(",
    b"}", b"t", b"\x8e\xff\xff\xff\xff\xff\xff\xff\x00", b"\x8a\xff" + b"\x7f" * 255, b"N",
    b"\x88", b"G" + b"\xff" * 8, b"I1\n", b"L1L\n", b"P1\n", b"Q", b"R", b"b", b"\x81", b"\x92",
    b"\x93", b"\x95" + b"\xff" * 8, b".",
)  # fmt: skip
"""Fragments of programs for the pickle machine."""


def opcodes(data: bytes, rng: Random) -> bytes:
    """Insert fragments of programs into a pickle."""
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(data))
        data = data[:place] + rng.choice(_OPCODES) + data[place + rng.randrange(3) :]
    return data


def pickled(data: bytes, rng: Random) -> bytes:
    """Change values of one of our pickles, and pickle it again."""
    whole = pickle.loads(data)  # noqa: S301 - made by the tests
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        _change(whole, rng)
    return pickle.dumps(whole, rng.randrange(2, 6))


# --- CSV ----------------------------------------------------------------------------------------


def cells(data: bytes, rng: Random) -> bytes:
    """Change, move, drop or double cells and lines of a CSV file, its header included."""
    rows = [*csv.reader(io.StringIO(data.decode(errors="replace").replace("\0", "")))]
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        row = rng.choice(rows)
        if not row or rng.random() < 0.2:
            rows.insert(rng.randrange(len(rows) + 1), [*rng.choice(rows)])
        elif rng.random() < 0.2:
            del row[rng.randrange(len(row))]
        else:
            place = rng.randrange(len(row))
            row[place] = rng.choice((text(row[place], rng), str(rng.choice(ODD)), "1.234.567,89"))
    file = io.StringIO()
    csv.writer(file, quoting=rng.choice((csv.QUOTE_ALL, csv.QUOTE_MINIMAL))).writerows(rows)
    return file.getvalue().encode(errors="replace")


DAMAGE: dict[str, tuple[Damage, ...]] = {
    "sqlite": (rows, rows, rows, flipped, cut),
    "json": (tokens, tokens, tokens, flipped, cut),
    "gzip": (zipped, zipped, flipped, cut),
    "dict": (lines, lines, lines, flipped, cut),
    "literal": (lines, lines, lines, flipped, cut),
    "parquet": (columns, columns, flipped, cut),
    "pickle": (pickled, pickled, pickled, opcodes, flipped, cut),
    "csv": (cells, cells, flipped, cut),
}
"""Kinds of damage by kind of file."""
