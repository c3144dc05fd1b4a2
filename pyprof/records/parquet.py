"""Records as Parquet: the same columns under the same names, lists as lists.

Texts are written and read as dictionaries, so that neither side spells out what repeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from pyprof import schema
from pyprof.errors import RecordsError, reason
from pyprof.process.threads import thread_pool
from pyprof.records.records import DictionaryColumn, Records, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from pyprof.records.records import Column

MAGIC = b"PAR1"

_FIRST_ROWS, _ROWS = 1 << 14, 1 << 17
"""Rows of the first row group, and the maximum: each has twice the rows of the one before. The
first is small because nothing can be written while it is made.
"""
_TEXT_BYTES = 1 << 24
"""Maximum bytes of text in a row group: long texts make groups of fewer rows."""
_DEVICES = b"pyprof.devices"
_RISE = frozenset(("seqId", "start", "end", "launch", "corrId", "opId", "callIds"))
"""Columns of numbers that grow by a little from row to row: stored as differences, they take a
third of the time or less, and half of the size, compared with zstd.
"""
_DIFFER = _RISE | {"kDuration", "seqMarker"}
"""Columns that hardly repeat a value: a dictionary of them is slow to make, and larger."""


def write(records: Records, file: BinaryIO, columns: pa.Schema = schema.PARQUET) -> None:
    """Write all records, row group by row group; the next is made while one is written.

    `columns` are all or some of the schema's; their metadata is added to that of the file.
    """
    slices = _slices(records, columns)
    first = next(slices)
    with (
        pq.ParquetWriter(file, first.schema, **_encoding(columns)) as writer,
        thread_pool(1) as pool,
    ):
        devices = orjson.dumps(records.devices.to_pylist())
        writer.add_key_value_metadata({**(columns.metadata or {}), _DEVICES: devices})
        written = pool.submit(writer.write_table, first)
        for table in slices:
            written.result()
            written = pool.submit(writer.write_table, table)
        written.result()


def _encoding(columns: pa.Schema) -> dict[str, Any]:
    """Choose how columns are encoded: as dictionaries if values repeat."""
    leaves = {field.name: _leaf(field) for field in columns}
    return {
        "use_dictionary": [leaves[name] for name in leaves if name not in _DIFFER],
        "column_encoding": {
            leaves[name]: "DELTA_BINARY_PACKED" for name in leaves if name in _RISE
        },
        "compression": "zstd",
        # A stored Arrow schema would make dictionaries of texts for every reader.
        "store_schema": False,
    }


def _slices(records: Records, columns: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of each row group; at least one group, without rows if there are none."""
    cut = {field.name: _make_slicer(records, field) for field in columns}
    most = max(1, min(_ROWS, _TEXT_BYTES * records.rows // max(1, records.text_bytes("seqMarker"))))
    start, length = 0, min(_FIRST_ROWS, most, records.rows)
    while True:
        yield pa.table({name: column(start, length) for name, column in cut.items()})
        start += length
        if start == records.rows:
            return
        length = min(2 * length, most, records.rows - start)


def _make_slicer(records: Records, field: pa.Field) -> Callable[[int, int], pa.Array]:
    """Return a function that slices a column, texts as dictionaries."""
    column = records.columns.get(field.name)
    if column is None:
        return lambda _, length: pa.nulls(length, field.type)
    if isinstance(column, DictionaryColumn):
        values = _dictionary_encode(pa.array(column.values, field.type))
        return lambda start, length: values.take(column.arrow_index(start, length))
    return records.cut(field.name)


def _dictionary_encode(values: pa.Array) -> pa.Array:
    """Number the distinct texts of a column of texts or lists of texts."""
    if pa.types.is_string(values.type):
        return values.dictionary_encode()
    if values.type.equals(pa.list_(pa.string())):
        numbered = values.values.dictionary_encode()
        return pa.ListArray.from_arrays(values.offsets, numbered, mask=values.is_null())
    return values


def _repeats(field: pa.Field) -> bool:
    """Whether a column is stored dictionary-encoded: texts, and lists that repeat."""
    nested = pa.types.is_list(field.type) or pa.types.is_string(field.type)
    return nested and field.name not in _DIFFER


def _leaf(field: pa.Field) -> str:
    """Name a column as Parquet does: by the path to the values of its lists."""
    return str(field.name) + ".list.element" * str(field.type).count("list<")


_ROWS_A_BYTE, _RATIO, _ANY_BYTES = 16, 250, 1 << 28
"""Maximum rows per byte of a file that `write` wrote, and unpacked bytes per byte: rows differ in
their times, and texts do not repeat endlessly. The last number of unpacked bytes is always allowed.
"""


RAW = frozenset(("seqMarker", "reprMarkers"))
"""Columns of texts that other columns, made from them, can replace."""


def read(path: Path, *, raw: bool = True) -> Records:
    """Read a file that `write` wrote; raise RecordsError for any other.

    `raw=False` leaves out texts that costs, columns and frames do not need, if the file has
    `seqTemplate` to replace them.
    """
    records = _read(path, frozenset() if raw else RAW)
    return records if raw or "seqTemplate" in records.columns else _read(path, frozenset())


def _read(path: Path, skip: Collection[str]) -> Records:
    texts = [_leaf(field) for field in schema.PARQUET if _repeats(field)]
    try:
        described = pq.read_metadata(path)
        # raise ArrowInvalid if the footer describes more than the file can hold
        size = path.stat().st_size
        groups = (described.row_group(index) for index in range(described.num_row_groups))
        unpacked = sum(group.total_byte_size for group in groups)
        if described.num_rows > _ROWS_A_BYTE * size or unpacked > max(_ANY_BYTES, _RATIO * size):
            raise pa.ArrowInvalid(f"{described.num_rows:,} rows in {size:,} bytes")
        present = set(described.schema.to_arrow_schema().names)
        table = pq.read_table(
            path,
            columns=[name for name in schema.PARQUET.names if name in present and name not in skip],
            read_dictionary=texts,
            partitioning=None,  # "rank=0/" in a path is not a column
        )
        devices = (described.metadata or {}).get(_DEVICES)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, MemoryError):
            raise
        raise RecordsError(
            f"{path}: a damaged Parquet file ({reason(error)}); parse again"
        ) from None
    if missing := [name for name in schema.OLD_RECORD.names if name not in present]:
        raise RecordsError(
            f"{path}: a Parquet file without the columns {', '.join(missing[:3])}; "
            "expected output of pyprof parse -o FILE.parquet"
        )
    try:
        return _records(table, devices)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, MemoryError):
            raise
        raise RecordsError(
            f"{path}: a Parquet file with unexpected column types ({reason(error)}); parse again"
        ) from None


def _records(table: pa.Table, devices: bytes | None) -> Records:
    table = table.unify_dictionaries()
    table.validate(full=True)
    with thread_pool() as pool:  # Arrow works outside Python's lock
        columns = list(pool.map(_column, table.column_names, table.columns))
    described = pa.Table.from_pylist(orjson.loads(devices or b"[]"), schema.DEVICES)
    filled = {
        name: column
        for name, column, values in zip(table.column_names, columns, table.columns, strict=True)
        if values.null_count < len(values) or not len(values)
    }
    return Records(table.num_rows, filled, described)


def _column(name: str, values: pa.ChunkedArray) -> Column:
    """Cast a column to its type; repeated texts and lists are dictionary-encoded."""
    field = schema.PARQUET.field(name)
    if values.type != _dictionary_encode(pa.nulls(0, field.type)).type:
        values = values.cast(field.type)
    return encode(values.combine_chunks()) if _repeats(field) else values
