"""Dict lines: one record a line, at once a Python literal and a JSON object.

JSON without null, true and false is Python. Lines are put together column by column: each
distinct value is spelt once, columns of few values together, and Arrow joins the pieces of
thousands of rows at a time.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.parse.records import Coded, Records, first_rows, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

_FIRST_ROWS, _ROWS = 1 << 10, 1 << 15
"""Put together at once: at first, and at most."""
_BYTES = 1 << 23
"""What is put together at once, however long the texts are. The system clears memory for more."""
_WORKERS = 2
_FEW = 1 << 10
"""Columns beside each other with as many values at most are spelt together."""
_ESCAPED = '["\\\\\x00-\x1f]'
"""What JSON does not take as it is in a text."""


def write(records: Records, file: BinaryIO, progress: Callable[[int], None] | None = None) -> None:
    """Write all records; `progress` gets the number of rows after each batch."""
    pieces = _pieces(records)
    with ThreadPoolExecutor(_WORKERS) as pool:
        pending: deque[tuple[int, Future[memoryview]]] = deque()
        start, rows = 0, _FIRST_ROWS
        while start < records.rows or pending:
            if start < records.rows:
                rows = min(rows, records.rows - start)
                pending.append((rows, pool.submit(_lines, pieces, start, rows)))
                start += rows
            if len(pending) > _WORKERS or start == records.rows:  # so that memory stays bounded
                written, future = pending.popleft()
                text = future.result()
                file.write(text)
                rows = _rows(written, text.nbytes)
                if progress:
                    progress(written)


def _rows(written: int, size: int) -> int:
    """Choose how many rows to write next, after some of this size in bytes."""
    return max(1, min(_ROWS, _BYTES * written // max(1, size)))


def _pieces(records: Records) -> list[Callable[[int, int], pa.Array]]:
    """Give the functions that spell columns, one for several beside each other of few values."""
    pieces: list[Callable[[int, int], pa.Array]] = []
    alike: list[tuple[str, Coded]] = []
    there = [name for name in schema.RECORD.names if name in records.columns]
    for place, name in enumerate(there):
        key = (", " if place else "{") + f'"{name}": '
        column = _of_few_values(records, name)
        if column is not None and len(column.values) <= _FEW:
            alike.append((key, column))
            continue
        pieces += _together(alike)
        alike = []
        pieces.append(_plain(key, records.cut(name)) if column is None else _coded(key, column))
    return [*pieces, *_together(alike)]


def _of_few_values(records: Records, name: str) -> Coded | None:
    """Give a column of texts, or of numbers few of which differ, as its distinct values."""
    column = records.columns[name]
    if isinstance(column, Coded) or not pa.types.is_integer(column.type):
        return column if isinstance(column, Coded) else None
    few = pc.count_distinct(column.slice(0, _ROWS)).as_py() <= _FEW
    return records.coded(name) if few else None


def _lines(pieces: list[Callable[[int, int], pa.Array]], start: int, rows: int) -> memoryview:
    """Put together the lines of some rows."""
    joined = pc.binary_join_element_wise(*(piece(start, rows) for piece in pieces), "}\n", "")
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.combine_chunks()
    offsets = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset :]
    return memoryview(joined.buffers()[2])[offsets[0] : offsets[len(joined)]]


def _spelt(key: str, column: Coded) -> pa.Array:
    """Spell `, "key": value` of each distinct value; the last, of -1, is empty."""
    return pa.array(
        [*(key + orjson.dumps(value).decode() for value in column.values), ""], pa.string()
    )


def _coded(key: str, column: Coded) -> Callable[[int, int], pa.Array]:
    """Give the function that spells a column's `, "key": value` for some rows."""
    spelt = _spelt(key, column)
    return lambda start, rows: spelt.take(
        pa.array(column.index[start : start + rows] % len(spelt))  # -1 is the last
    )


def _together(alike: Sequence[tuple[str, Coded]]) -> Iterator[Callable[[int, int], pa.Array]]:
    """Give the function that spells columns, if there are any: each combination of values once."""
    if not alike:
        return
    columns = [(column.index, _spelt(key, column)) for key, column in alike]

    def spell(start: int, rows: int) -> pa.Array:
        number = number_combinations(*(index[start : start + rows] for index, _ in columns))
        first = start + first_rows(number)
        each = (spelt.take(pa.array(index[first] % len(spelt))) for index, spelt in columns)
        return pc.binary_join_element_wise(*each, "").take(pa.array(number))

    yield spell


def _plain(key: str, cut: Callable[[int, int], pa.Array]) -> Callable[[int, int], pa.Array]:
    """Give the function that spells a column's `, "key": value` for some rows."""

    def spell(start: int, rows: int) -> pa.Array:
        values = cut(start, rows)
        spelt = pc.binary_join_element_wise(key, _spell(values), "")
        return spelt.fill_null("") if values.null_count else spelt

    return spell


def _spell(values: pa.Array) -> pa.Array:
    """Spell numbers, texts and lists of them; null stays null."""
    if pa.types.is_list(values.type):
        flat = _spell(values.flatten())
        lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([np.zeros(1, np.int32), np.cumsum(lengths, dtype=np.int32)])
        rows = pa.ListArray.from_arrays(pa.array(offsets), flat, mask=values.is_null())
        return pc.binary_join_element_wise("[", pc.binary_join(rows, ", "), "]", "")
    if pa.types.is_string(values.type):
        return _spell_texts(values)
    return values.cast(pa.string())


def _spell_texts(values: pa.Array) -> pa.Array:
    difficult = pc.match_substring_regex(values, _ESCAPED)
    spelt = pc.binary_join_element_wise('"', values, '"', "")
    if not pc.any(difficult).as_py():
        return spelt
    rows = np.flatnonzero(difficult.fill_null(False).to_numpy(zero_copy_only=False))  # noqa: FBT003
    texts = [orjson.dumps(text).decode() for text in values.take(pa.array(rows)).to_pylist()]
    return pc.replace_with_mask(spelt, difficult.fill_null(False), pa.array(texts, pa.string()))  # noqa: FBT003
