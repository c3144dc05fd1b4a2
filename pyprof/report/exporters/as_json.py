"""Every column of every row as JSON: a list of objects, null for what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import orjson

from pyprof.prof.frame import as_arrow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.report.exporters import Part
    from pyprof.report.source import Source

SUFFIXES = (".json",)

_BATCH_ROWS = 1 << 14
_OPEN, _NEXT, _CLOSE = b"[\n", b",\n", b"\n]\n"


def write(source: Source, file: BinaryIO) -> None:
    """Write one object a line, under the names that `pyprof.load` gives the columns."""
    separator = _OPEN
    for batch in as_arrow(source.table).to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            file.write(separator + orjson.dumps(row))
            separator = _NEXT
    file.write(_CLOSE)


def join(parts: Sequence[Part], file: BinaryIO) -> None:
    """Put the objects of captures into one list."""
    separator = _OPEN
    for part in parts:
        with part.path.open("rb") as lines:
            for line in lines:
                if line.startswith(b"{"):
                    file.write(separator + line.rstrip(b",\n"))
                    separator = _NEXT
    file.write(_CLOSE)
