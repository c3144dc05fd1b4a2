"""Every column of every row as JSON: a list of objects, null for what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import orjson

from pyprof.prof.frame import as_arrow
from pyprof.report.exporters import as_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from pyprof.report.exporters import Part
    from pyprof.report.source import Source

SUFFIXES = (".json",)

_BATCH_ROWS = 1 << 14


def write(source: Source, file: BinaryIO) -> None:
    """Write one object a line, under the names that `pyprof.load` gives the columns."""
    _write([as_arrow(source.table)], file)


part = as_parquet.write


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Put the objects of captures into one list."""
    _write(as_parquet.batches(parts), file)


def _write(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    separator = b"[\n"
    for table in tables:
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            for row in batch.to_pylist():
                file.write(separator + orjson.dumps(row))
                separator = b",\n"
    file.write(b"\n]\n")
