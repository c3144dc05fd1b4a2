"""Reads rows of an SQLite file directly from its pages, some thousand at a time.

SQLite steps from value to value; here NumPy takes a column of all rows of many pages at once, which
is five times as fast. The file format is documented, and kept as it is for good:
https://www.sqlite.org/fileformat.html. Only what exporters write is read here: tables with row ids,
whole numbers and texts. Everything else raises NotPlainError, and SQLite itself has to read it:
logs that are still to be applied, other types, rows with fewer columns than the table, and damage.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from io import FileIO
    from pathlib import Path

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array

_CHUNK_BYTES = 1 << 23
"""Pages that are parsed at once: with fewer, threads wait for the GIL."""
_MAX_BYTES = 1 << 30
"""Maximum size of rows that overflow their pages: offsets of texts are int32."""
_SPARE_BYTES = 16
"""After the last page: eight bytes are read where a shorter number may begin."""

_HEAD_BYTES = 100
_MIN_USABLE_BYTES, _MAX_PAGE_BYTES = 480, 1 << 16
_INTERIOR, _LEAF = 5, 13
"""Kinds of pages of a table with row ids: those with child pages, and those with rows."""
_INTERIOR_HEAD, _LEAF_HEAD = 12, 8
_DEPTH = 20
"""A tree of more levels would have more pages than a file can."""

_WIDTH = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0])
"""Bytes of a value by its serial type; from 12 on blobs and texts alternate, growing by a byte."""
_SHIFT = np.minimum(64 - 8 * _WIDTH, 63)
_NULL, _REAL, _ZERO, _ONE, _BLOB = 0, 7, 8, 9, 12
_VARINT_BYTES = 8
"""Only negative numbers take more."""
_MORE, _SEVEN = 0x80, 0x7F
_UTF8 = 1


class NotPlainError(Exception):
    """SQLite must read the file: it, or one of its values, is not what exporters write."""


class Pick(NamedTuple):
    """A column to read: its index in the table, and the type of its values."""

    position: int
    type: pa.DataType
    """int64, string or binary: texts or bytes as stored, empty for NULL."""
    is_row_id: bool = False
    """It is the INTEGER PRIMARY KEY, for which rows store NULL."""


def batches(path: Path, root: int, picks: Sequence[Pick]) -> Iterator[list[pa.Array]]:
    """Read some columns of the table whose tree begins at page `root`, some rows at a time.

    Rows come in the order of their ids, as from SQLite. `path` must be no link: a journal lies next
    to the file itself. Raises NotPlainError at any time.
    """
    logs = [path.with_name(f"{path.name}{log}") for log in ("-wal", "-journal")]
    if any(log.exists() and log.stat().st_size for log in logs):  # still to be applied, or undone
        raise NotPlainError
    try:
        with path.open("rb", buffering=0) as stream:
            file = _file(stream, path.stat().st_size)
            if any(pick.type == pa.string() for pick in picks) and not file.is_utf8:
                raise NotPlainError
            for leaves in file.chunks(_leaves(file, root)):
                yield _Rows(file, leaves).columns(picks)
    except (IndexError, OSError, OverflowError):
        raise NotPlainError from None


class _File(NamedTuple):
    stream: FileIO
    page_bytes: int
    usable_bytes: int
    """Usable bytes of each page; the rest belongs to extensions."""
    pages: int
    is_utf8: bool

    def chunks(self, numbers: Int64Array) -> Iterator[Int64Array]:
        at_once = max(1, _CHUNK_BYTES // self.page_bytes)
        for start in range(0, len(numbers), at_once):
            yield numbers[start : start + at_once]

    def read(self, numbers: Int64Array) -> _Bytes:
        """Read pages, which are counted from 1."""
        if numbers.min() < 1 or numbers.max() > self.pages:
            raise NotPlainError
        data = np.empty(len(numbers) * self.page_bytes + _SPARE_BYTES, np.uint8)
        runs = [0, *(np.flatnonzero(np.diff(numbers) != 1) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(runs):
            self.stream.seek((int(numbers[begin]) - 1) * self.page_bytes)
            part = data.data[begin * self.page_bytes : end * self.page_bytes]
            if self.stream.readinto(part) != len(part):
                raise NotPlainError
        return _Bytes(data)


def _file(stream: FileIO, size: int) -> _File:
    """Check the file's header, beyond what the probe of its tables has seen."""
    head = stream.read(_HEAD_BYTES)
    if len(head) < _HEAD_BYTES:
        raise NotPlainError
    page_bytes = int.from_bytes(head[16:18], "big")
    page_bytes = _MAX_PAGE_BYTES if page_bytes == 1 else page_bytes
    if page_bytes - head[20] < _MIN_USABLE_BYTES:
        raise NotPlainError
    is_utf8 = int.from_bytes(head[56:60], "big") == _UTF8
    return _File(stream, page_bytes, page_bytes - head[20], size // page_bytes, is_utf8)


class _Bytes:
    """Bytes from which numbers are read at many unaligned offsets at once."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data = data
        self._views = {
            kind: np.ndarray((len(data) - 7,), kind, data.data, strides=(1,))
            for kind in (">u2", ">u4", ">i8")
        }

    def u8(self, at: Int64Array) -> NDArray[np.uint8]:
        return self.data[at]

    def u16(self, at: Int64Array) -> Int64Array:
        return self._views[">u2"][at].astype(np.int64)

    def u32(self, at: Int64Array) -> Int64Array:
        return self._views[">u4"][at].astype(np.int64)

    def i64(self, at: Int64Array) -> Int64Array:
        return self._views[">i8"][at].astype(np.int64)

    def varint(self, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Read numbers of seven bits a byte, the last below 128; also return the next offsets."""
        byte = self.u8(at)
        value, at = (byte & _SEVEN).astype(np.int64), at + 1
        rows: slice | Int64Array = slice(None)
        for _ in range(_VARINT_BYTES):
            more = byte >= _MORE
            if not more.any():
                return value, at
            if not more.all():
                rows = np.arange(len(at))[rows][more]
            byte = self.u8(at[rows])
            value[rows] = value[rows] << 7 | byte & _SEVEN
            at[rows] += 1
        raise NotPlainError


def _leaves(file: _File, root: int) -> Int64Array:
    """Return the pages with the rows of a table, in the order of their ids."""
    level = np.array([root])
    for _ in range(_DEPTH):
        if file.read(level[:1]).data[0] == _LEAF:
            return level
        level = _read_children(file, level)
    raise NotPlainError


def _read_children(file: _File, level: Int64Array) -> Int64Array:
    """Return the child pages; each may occur only once."""
    parts: list[Int64Array] = []
    for numbers in file.chunks(level):
        data = file.read(numbers)
        base = np.arange(len(numbers)) * file.page_bytes
        cells, count = _cells(data, base, _INTERIOR, _INTERIOR_HEAD, file.usable_bytes)
        parts.append(np.insert(data.u32(cells), np.cumsum(count), data.u32(base + 8)))
        if sum(map(len, parts)) > file.pages:
            raise NotPlainError
    children = np.concatenate(parts)
    if len(np.unique(children)) < len(children):
        raise NotPlainError
    return children


def _cells(
    data: _Bytes, base: Int64Array, kind: int, head: int, usable: int
) -> tuple[Int64Array, Int64Array]:
    """Return where the cells of pages begin, in their order, and the number of each one's page."""
    if (data.u8(base) != kind).any():
        raise NotPlainError
    count = data.u16(base + 3)
    first = np.cumsum(count) - count
    listed = np.repeat(base + head - 2 * first, count) + 2 * np.arange(count.sum())
    offset = data.u16(listed)
    least = np.repeat(head + 2 * count, count)
    if (offset < least).any() or (offset > usable - 4).any():
        raise NotPlainError
    return offset + np.repeat(base, count), count


class _Rows:
    """The rows of some pages: where each begins, and the types of its values."""

    def __init__(self, file: _File, leaves: Int64Array) -> None:
        pages = file.read(leaves)
        base = np.arange(len(leaves)) * file.page_bytes
        cells, count = _cells(pages, base, _LEAF, _LEAF_HEAD, file.usable_bytes)
        size, at = pages.varint(cells)
        self._row_id, at = pages.varint(at)
        here = size <= file.usable_bytes - 35
        ends = np.repeat(base + file.usable_bytes, count)
        if (at + size > ends)[here].any():
            raise NotPlainError
        self._bytes = pages
        if not here.all():
            rows = np.flatnonzero(~here)
            self._bytes, at[rows] = _join_overflow(file, pages, at[rows], size[rows], ends[rows])
        self._end = at + size
        head_bytes, self._types_at = self._bytes.varint(at)
        self._head_end = self._values_at = at + head_bytes

    def columns(self, picks: Sequence[Pick]) -> list[pa.Array]:
        """Return the columns, in the order of the picks."""
        by_position = {pick.position: pick for pick in picks}
        arrays: dict[int, pa.Array] = {}
        types_at, values_at = self._types_at, self._values_at.copy()
        for index in range(max(by_position) + 1):
            kind, types_at = self._bytes.varint(types_at)
            if (types_at > self._head_end).any():  # the column was added later
                raise NotPlainError
            if len(kind) and kind.min() == kind.max():
                kind = kind[:1]  # stands for all, in half the time
            width = _WIDTH[np.minimum(kind, _BLOB - 1)]
            if len(kind) and kind.max() >= _BLOB:
                width = np.where(kind < _BLOB, width, (kind - _BLOB) >> 1)
            if (values_at + width > self._end).any():
                raise NotPlainError
            if index in by_position:
                arrays[index] = self._column(by_position[index], kind, values_at, width)
            values_at += width
        return [arrays[pick.position] for pick in picks]

    def _column(self, pick: Pick, kind: Int64Array, at: Int64Array, width: Int64Array) -> pa.Array:
        if pick.is_row_id:
            if kind.any() or pick.type != pa.int64():  # SQLite formats it as text
                raise NotPlainError
            return pa.array(self._row_id)
        if pick.type != pa.int64():
            return self._texts(pick.type, kind, at, width)
        if (kind > _ONE).any() or (kind == _REAL).any():
            raise NotPlainError
        if not kind.any():
            return pa.nulls(len(at), pa.int64())
        values = self._bytes.i64(at)
        values >>= _SHIFT[kind]  # keeps the sign
        short = (kind == _ZERO) | (kind == _ONE)
        if short.any():
            values = np.where(short, kind - _ZERO, values)
        null = kind == _NULL
        return pa.array(values, mask=null if null.any() else None)

    def _texts(
        self, as_type: pa.DataType, kind: Int64Array, at: Int64Array, width: Int64Array
    ) -> pa.Array:
        is_text = (kind > _BLOB) & (kind % 2 == 1)
        fits = is_text if as_type == pa.string() else kind >= _BLOB
        if not (fits | (kind == _NULL)).all():
            raise NotPlainError
        order = np.argsort(at, kind="stable")
        bounds = np.stack([at, at + width], axis=1)[order].reshape(-1)
        if (np.diff(bounds) < 0).any():
            raise NotPlainError
        # Every second one is the gap between two texts.
        parts = pa.Array.from_buffers(
            pa.binary(),
            max(0, len(bounds) - 1),
            [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(self._bytes.data)],
        )
        index = np.empty(len(order), np.int64)
        index[order] = 2 * np.arange(len(order))
        return parts.take(pa.array(index)).view(as_type)


def _join_overflow(
    file: _File, pages: _Bytes, at: Int64Array, size: Int64Array, ends: Int64Array
) -> tuple[_Bytes, Int64Array]:
    """Append rows that continue on other pages; return all bytes, and where the rows begin."""
    least = (file.usable_bytes - 12) * 32 // 255 - 23
    local = least + (size - least) % (file.usable_bytes - 4)
    local = np.where(local > file.usable_bytes - 35, least, local)
    most = min(file.pages * file.page_bytes, _MAX_BYTES)
    if (at + local + 4 > ends).any() or (size > most).any() or size.sum() > most:
        raise NotPlainError
    parts = [pages.data[:-_SPARE_BYTES]]
    for begin, here, total in zip(at.tolist(), local.tolist(), size.tolist(), strict=True):
        parts.append(pages.data[begin : begin + here])
        parts.extend(_chain(file, pages.data, begin + here, total - here))
    joined = np.concatenate([*parts, np.zeros(_SPARE_BYTES, np.uint8)])
    return _Bytes(joined), len(parts[0]) + np.cumsum(size) - size


def _chain(file: _File, data: NDArray[np.uint8], at: int, left: int) -> Iterator[NDArray[np.uint8]]:
    """Follow the overflow pages of a row: each names the next."""
    while left > 0:
        number = int.from_bytes(data[at : at + 4].tobytes(), "big")
        data, at = file.read(np.array([number])).data, 0
        yield data[4 : 4 + min(left, file.usable_bytes - 4)]
        left -= file.usable_bytes - 4
