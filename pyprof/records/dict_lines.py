"""Dict lines: one record a line, at once a Python literal and a JSON object.

JSON without null, true and false is Python. Lines are assembled from pieces, thousands of rows at a
time: each distinct value is formatted once, columns with few values together, and each piece is
copied only once, into the output buffer.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, groupby
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema, string_concat
from pyprof.marker import templates
from pyprof.records.records import DictionaryColumn, Records, combinations, distinct, one_chunk
from pyprof.string_concat import StringPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future
    from typing import TypeAlias

    from pyprof.arrays import IntArray

    Speller: TypeAlias = Callable[[int, int], StringPart]
    """Formats some rows, given the first row and their number."""

_FIRST_ROWS, _ROWS = 1 << 10, 1 << 15
"""Rows assembled at once: at first, and at most."""
_BYTES = 1 << 23
"""Bytes assembled at once, however long the texts are. For larger blocks the system has to clear
memory.
"""
_WORKERS = 2
_MAX_DISTINCT = 1 << 10
"""Adjacent columns with as many values at most are formatted together."""
_NARROW = np.int16
"""An integer type that holds that many: arrays are as long as the records."""
_GOLDEN = (5**0.5 - 1) / 2


def write(records: Records, file: BinaryIO, progress: Callable[[int], None] | None = None) -> None:
    """Write all records; `progress` gets the number of rows after each batch."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        there = [name for name in schema.RECORD.names if name in records.columns]
        keys = [(", " if index else "{") + f'"{name}": ' for index, name in enumerate(there)]
        columns = pool.map(lambda key, name: [*_column(key, records, name)], keys, there)
        parts = [*chain.from_iterable(columns), string_concat.constant("}\n", records.rows)]
        grouped = [
            [*group] for _, group in groupby(parts, key=lambda part: isinstance(part, StringPart))
        ]
        spellers = [*chain.from_iterable(pool.map(_group, grouped))]
        pending: deque[tuple[int, Future[list[memoryview]]]] = deque()
        start, rows = 0, _FIRST_ROWS
        while start < records.rows or pending:
            if start < records.rows:
                rows = min(rows, records.rows - start)
                pending.append((rows, pool.submit(_lines, spellers, start, rows)))
                start += rows
            if len(pending) > _WORKERS or start == records.rows:  # so that memory stays bounded
                written, future = pending.popleft()
                texts = future.result()
                file.writelines(texts)
                # choose how many rows to write next, by the bytes of these
                size = sum(text.nbytes for text in texts)
                rows = max(1, min(_ROWS, _BYTES * written // max(1, size)))
                if progress:
                    progress(written)


def _lines(spellers: Sequence[Speller], start: int, rows: int) -> list[memoryview]:
    try:
        lines = string_concat.join_element_wise([spell(start, rows) for spell in spellers])
    except pa.ArrowException:  # an array holds at most 2 GiB: long texts begin in these rows
        if rows == 1:
            raise
        half = rows // 2
        return [*_lines(spellers, start, half), *_lines(spellers, start + half, rows - half)]
    return [memoryview(lines.buffers()[2])[: string_concat.offsets(lines)[-1]]]


def _group(parts: Sequence[Speller | StringPart]) -> Sequence[Speller]:
    """Combine adjacent string parts into one speller; a group of spellers stays as it is."""
    spellers = [part for part in parts if not isinstance(part, StringPart)]
    return spellers or [_combine([part for part in parts if isinstance(part, StringPart)])]


def _combine(parts: Sequence[StringPart]) -> Speller:
    """Combine adjacent parts, so that each combination of their values is formatted once."""
    first, number = combinations(*(part.index for part in parts))
    if len(first) <= _MAX_DISTINCT:
        texts, narrow = _joined(parts, first), number.astype(_NARROW)
        return lambda start, rows: StringPart(texts, narrow[start : start + rows])

    def spell(start: int, rows: int) -> StringPart:
        some, index = distinct(number[start : start + rows])
        return StringPart(_joined(parts, start + some), index)

    return spell


def _joined(parts: Sequence[StringPart], rows: IntArray) -> pa.StringArray:
    return pc.binary_join_element_wise(*(string_concat.take(part, rows) for part in parts), "")


def _column(key: str, records: Records, name: str) -> Iterator[Speller | StringPart]:
    """Yield what formats a column: its key, then its values."""
    column, kind = records.columns[name], schema.RECORD.field(name).type
    if (lists := records.template_lists(name)) is not None:
        yield from _lists(key, '"', lists, _texts)
    elif isinstance(column, DictionaryColumn) or kind not in (pa.int64(), pa.list_(pa.int64())):
        column = records.dictionary(name)
        texts = [key + orjson.dumps(value).decode() for value in column.values]
        piece = StringPart(pa.array(texts, pa.string()), column.index)
        yield piece if len(texts) <= _MAX_DISTINCT else _combine([piece])
    elif kind == pa.int64():
        yield from _integers(key, one_chunk(column))
    else:
        yield from _lists(key, "", records.arrow(name), _numbers)


def _integers(key: str, values: pa.Array) -> Iterator[Speller | StringPart]:
    # a few thousand values, spaced so that they do not alias with the period of steps
    indices = np.arange(_ROWS) * _GOLDEN % 1 * len(values)
    if pc.count_distinct(values.take(pa.array(indices.astype(np.int64)))).as_py() <= _MAX_DISTINCT:
        encoded = values.dictionary_encode()
        texts = pc.binary_join_element_wise(key, encoded.dictionary.cast(pa.string()), "")
        index = encoded.indices.fill_null(-1).to_numpy()
        yield StringPart(texts, index.astype(_NARROW) if len(texts) <= _MAX_DISTINCT else index)
    else:
        null = values.is_null().to_numpy(zero_copy_only=False)
        yield StringPart(pa.array([key]), -null.astype(np.int8))
        yield lambda start, rows: _numbers(values.slice(start, rows))[0]


def _lists(
    key: str, quote: str, values: pa.ListArray, spell_items: Callable[[pa.Array], list[StringPart]]
) -> Iterator[Speller | StringPart]:
    """Format lists; `spell_items` formats their items, without quotes, in parts to be joined."""
    begin = pa.array([f"{key}[]", f"{key}[{quote}"])
    between = pa.array([f"{quote}, {quote}", f"{quote}]"])
    length = pc.list_value_length(values).fill_null(-1).to_numpy()
    yield StringPart(begin, np.minimum(length, 1).astype(np.int8))

    def spell(start: int, rows: int) -> StringPart:
        some = values.slice(start, rows)
        length = pc.list_value_length(some).fill_null(0).to_numpy()
        bounds = np.append(np.int32(0), np.cumsum(length, dtype=np.int32))
        last = np.zeros(bounds[-1], np.int32)
        last[bounds[1:][length > 0] - 1] = 1
        items = string_concat.join_element_wise(
            [*spell_items(some.flatten()), StringPart(between, last)]
        )
        return string_concat.per_row(string_concat.slices(items, bounds))

    yield spell


def _numbers(values: pa.Array) -> list[StringPart]:
    return [string_concat.per_row(values.cast(pa.string()))]


def _texts(texts: pa.StructArray) -> list[StringPart]:
    return templates.pieces_of(texts, lambda text: orjson.dumps(text)[1:-1].decode())
