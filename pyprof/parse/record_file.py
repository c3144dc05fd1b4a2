"""Records from whatever holds them: dict lines (new or the original's), Parquet, or a capture."""

from __future__ import annotations

import ast
import io
import re
import sys
import warnings
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from pyprof import readers, schema
from pyprof.errors import RecordsError
from pyprof.gpu.kernel_roles import communicates
from pyprof.parse import parse_file
from pyprof.process.threads import thread_pool
from pyprof.readers import refusals
from pyprof.readers.encodings import utf8
from pyprof.records import parquet
from pyprof.records.record_check import plausible_records
from pyprof.records.records import (
    DictionaryColumn,
    Records,
    concat_dictionaries,
    encode,
    split_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future

    from pyprof.arrays import Int64Array
    from pyprof.records.records import Column

STDIN = "-"
_BLOCK_BYTES = 1 << 24
_PARSED_BYTES = 1 << 20  # parsed at once: fits the cache
_WORKERS = 2
_HEAD_BYTES = 1 << 12


def load(source: str, *, raw: bool = True) -> Records:
    """Read records from a file of any kind, or dict lines from stdin (`-`).

    `raw` is that of `parquet.read`.

    Raises RecordsError or CaptureError, saying what to do, where the file is none of them.
    """
    if source == STDIN:
        if sys.stdin is None:  # closed by the shell: `<&-`
            raise RecordsError("stdin is closed; name a file")
        data = utf8(sys.stdin.buffer.read())
        if not _looks_like_records(data[:_HEAD_BYTES]):
            raise RecordsError(
                "stdin: no dict lines; pipe in the output of pyprof parse, "
                "or save captures and Parquet to a file and name that"
            )
        return _check("stdin", _from_lines("stdin", io.BytesIO(data)))
    path = Path(source)
    before, head = readers.stamp(path), readers.read_head(path)
    if head.startswith(parquet.MAGIC):
        records = parquet.read(path, raw=raw)
    elif _looks_like_records(utf8(head)):
        with path.open("rb") as file:
            records = _from_lines(str(path), file)
    elif readers.reader_of(path, head):
        return parse_file(path, raw=raw)
    else:
        raise RecordsError(
            f"{path}: neither a capture nor output of pyprof parse "
            f"({refusals.describe(path, head)}); {readers.expected()}, "
            "or output of pyprof parse"
        )
    records = _check(source, records)
    return replace(records, warnings=(*records.warnings, *readers.changed(path, before)))


def is_records(source: str) -> bool:
    """Whether a file, or stdin (`-`), holds records rather than a capture, by how it begins."""
    if source == STDIN:
        return True
    head = readers.read_head(Path(source))
    return head.startswith(parquet.MAGIC) or _looks_like_records(utf8(head))


def _check(source: str, records: Records) -> Records:
    """Refuse what no version of parse wrote: rows without name or duration, gaps in lists."""
    # Rows with an impossible time are written without it, but with their kind.
    untimed = np.asarray(records.arrow("kDuration").is_null())
    if (untimed & (records.dictionary("kind").index < 0)).any():
        raise RecordsError(f"{source}: rows without kDuration; parse the capture again")
    for name in ("kShortName", "kLongName"):
        if (records.dictionary(name).index < 0).any():
            raise RecordsError(f"{source}: rows without {name}; parse the capture again")
    lists = [name for name in records.columns if pa.types.is_list(schema.PARQUET.field(name).type)]
    for name in lists:
        column = records.columns[name]
        if isinstance(column, DictionaryColumn):
            column = pa.array(column.values, schema.PARQUET.field(name).type)
        if _has_gaps(column):
            raise RecordsError(f"{source}: a list in {name} has a null; parse the capture again")
    # whether some row has a different number of ids than of texts
    ids = _lengths(records.columns.get("callIds"), records.rows)
    markers = _lengths(records.columns.get("marker"), records.rows)
    seqs = [name for name in ("seqMarker", "seqTemplate") if name in records.columns]
    for name in seqs or ["seqMarker"]:
        texts = markers + _lengths(records.columns.get(name), records.rows)
        if bool(((ids > 0) & (ids != texts)).any()):
            raise RecordsError(
                f"{source}: callIds do not match marker and {name}; parse the capture again"
            )
    bounds = pc.list_value_length(records.arrow("launch"))
    if pc.any(pc.not_equal(bounds, 2)).as_py():
        raise RecordsError(f"{source}: launch is not a start and an end; parse the capture again")
    return _mark_communication(plausible_records(source, records))


def _lengths(column: Column | None, rows: int) -> Int64Array:
    if column is None:
        return np.zeros(rows, np.int64)
    if isinstance(column, DictionaryColumn):
        return column.numpy(lambda value: len(value or ()), 0)
    list_lengths = pc.list_value_length(column).fill_null(0)
    return np.asarray(list_lengths.to_numpy()).astype(np.int64)


def _mark_communication(records: Records) -> Records:
    """Set `dir` to comm for all kernels that communicate; older versions recognized fewer."""
    part = records.dictionary("dir")
    named = records.dictionary("kLongName").matches(communicates)
    is_comm = part.is_in("comm", "copy")  # copy takes precedence over comm
    if (is_comm | ~named).all():
        return records
    index = np.where(named & ~is_comm, len(part.values), part.index)
    columns = {**records.columns, "dir": DictionaryColumn(index, [*part.values, "comm"])}
    return replace(records, columns=columns)


def _has_gaps(lists: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a list, or a list in a list, has a null."""
    within = pc.list_flatten(lists)
    return bool(within.null_count) or (pa.types.is_list(within.type) and _has_gaps(within))


def _looks_like_records(head: bytes) -> bool:
    return head.lstrip()[:14].replace(b"'", b'"').startswith(b'{"kShortName"')


def _from_lines(source: str, file: BinaryIO) -> Records:
    head = file.read(_HEAD_BYTES)
    if utf8(head) != head:
        file = io.BytesIO(utf8(head + file.read()))
    if utf8(head).lstrip().startswith(b'{"'):
        file.seek(0)
        try:
            return _json(file)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass  # some line is not JSON: read line by line, which is slower
    file.seek(0)
    return _read_literals(source, file)


def _json(file: BinaryIO) -> Records:
    """Read blocks of lines side by side; Arrow parses outside Python's lock."""
    batches: list[dict[str, Column]] = []
    with thread_pool(_WORKERS) as pool:
        pending: deque[Future[dict[str, Column]]] = deque()
        while block := file.read(_BLOCK_BYTES):
            pending.append(pool.submit(_columns, block + file.readline()))  # whole lines
            if len(pending) > _WORKERS:  # wait, so that memory stays bounded
                batches.append(pending.popleft().result())
        batches.extend(future.result() for future in pending)
    return _concatenate(batches)


def _columns(block: bytes) -> dict[str, Column]:
    parsing = arrow_json.ParseOptions(
        explicit_schema=schema.RECORD, unexpected_field_behavior="ignore", newlines_in_values=False
    )
    half = _PARSED_BYTES // 2
    # whether some line may be longer than what Arrow parses at once
    has_long_line = any(
        block.find(b"\n", start, start + half) < 0 for start in range(0, len(block), half)
    )
    longest = max(_PARSED_BYTES, len(block)) if has_long_line else _PARSED_BYTES
    reading = arrow_json.ReadOptions(use_threads=False, block_size=longest)
    table = arrow_json.read_json(pa.BufferReader(block), reading, parsing)
    columns: dict[str, Column] = {}
    for name, kind in zip(schema.RECORD.names, schema.RECORD.types, strict=True):
        column = table.column(name).combine_chunks()
        repeats = pa.types.is_string(kind) or kind.equals(pa.list_(pa.string()))
        if repeats and name != "seqMarker":
            columns[name] = encode(column)
        else:
            column.validate(full=True)  # Arrow's JSON reader accepts invalid UTF-8
            columns[name] = split_numbers(column) if repeats else column
    return columns


def _concatenate(batches: list[dict[str, Column]]) -> Records:
    columns: dict[str, Column] = {}
    for name in schema.RECORD.names:
        parts = [batch[name] for batch in batches]
        joined: Column
        if isinstance(parts[0], DictionaryColumn):
            joined = concat_dictionaries(parts)
            has_values = (joined.index >= 0).any()
        else:
            joined = pa.chunked_array(parts)
            has_values = joined.null_count < len(joined)
        if has_values:
            columns[name] = joined
    return Records(sum(len(batch["kShortName"]) for batch in batches), columns)


_LINES = 1 << 14
"""Maximum number of lines that are held as Python objects."""


def _read_literals(source: str, lines: Iterable[bytes]) -> Records:
    numbered = ((n, line) for n, line in enumerate(lines, 1) if line.strip())
    tables = []
    while batch := [_record(source, n, line) for n, line in islice(numbered, _LINES)]:
        tables.append(pa.Table.from_pylist(batch, schema.RECORD))
    if not tables:
        raise RecordsError(f"{source}: contains no records; parse the capture again")
    table = pa.concat_tables(tables)
    present = [
        name for name in schema.RECORD.names if table.column(name).null_count < table.num_rows
    ]
    return Records(table.num_rows, {name: table.column(name) for name in present})


def _record(source: str, number: int, line: bytes) -> dict[str, Any]:
    record = _literal(line)
    if not isinstance(record, dict) or "kShortName" not in record:
        raise RecordsError(f"{source}: line {number} is not a record; parse the capture again")
    try:
        for field in schema.RECORD:
            if record.get(field.name) is not None:
                pa.scalar(record[field.name], field.type)  # raises if it does not fit
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise RecordsError(
            f"{source}: line {number} has a value of the wrong type; parse the capture again"
        ) from None
    return {name: record.get(name) for name in schema.RECORD.names}


def _literal(line: bytes) -> Any:  # noqa: ANN401 - whatever the line holds
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(line)
    # some literals differ from JSON in quotes and brackets only
    if b'"' not in line and b"\\" not in line:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(_SIZES.sub(rb'": [\1, \2, \3]', line.replace(b"'", b'"')))
    if len(line) > _LONGEST_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a user's string
            return ast.literal_eval(line.decode().strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


_LONGEST_LITERAL = 1 << 24
"""Maximum bytes of a line: Python needs a hundred times as many to parse it."""
_SIZES = re.compile(rb'": \((\d+), (\d+), (\d+)\)')
