"""Every column of every row as JSON: a list of objects, null for what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import orjson

from pyprof.prof.frame import as_arrow

if TYPE_CHECKING:
    from pyprof.report.source import Source

SUFFIXES = (".json",)

_BATCH_ROWS = 1 << 14


def write(source: Source, file: BinaryIO) -> None:
    """Write one object a line, under the names that `pyprof.load` gives the columns."""
    separator = b"[\n"
    for batch in as_arrow(source.table).to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            file.write(separator + orjson.dumps(row))
            separator = b",\n"
    file.write(b"\n]\n")
