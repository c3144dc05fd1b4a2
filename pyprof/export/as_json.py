"""Every column of every row as JSON: a list of objects, null for unknown values."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from pyprof.answers import row_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

KIND = "rows"
SUFFIXES = (".json",)


def write(tables: Iterator[pa.Table], file: BinaryIO) -> None:
    """Write one object per line, with the column names of `pyprof.load`."""
    file.write(b"[\n")
    separator = b""
    for line in row_lines(tables):
        file.write(separator + line)
        separator = b",\n"
    file.write(b"\n]\n")
