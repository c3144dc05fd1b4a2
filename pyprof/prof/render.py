"""Rows as text: CSV, fixed-width columns, or separated by blanks. Whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof import safe
from pyprof.prof.columns import FLOAT, INT, NUMBERS, Column
from pyprof.prof.digits import rounded, scaled
from pyprof.prof.layout import MARK, header, layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyprof.prof.layout import Layout

    Render = Callable[[Sequence[Column], Iterable[pa.Table], BinaryIO], None]

_UNKNOWN = "-"


def as_csv(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write RFC 4180 with every field in quotes; what is not known is empty."""
    header = ",".join(f'"{column.header}"' for column in columns)
    file.write(f"{header}\n".encode())
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in batches:
        texts = [pc.fill_null(_text(batch.column(place)), "") for place in range(len(columns))]
        csv.write_csv(pa.table(texts, [column.name for column in columns]), file, options)


def quoted(text: str) -> str:
    """Quote one CSV field."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def as_text(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write fields separated by blanks; what is not known is `-`."""
    file.write((" ".join(column.header for column in columns) + "\n").encode())
    for batch in batches:
        texts = [_shown(batch.column(place)) for place in range(len(columns))]
        _write_lines(file, pc.binary_join_element_wise(*texts, " "))


def in_width(width: int, say: Callable[[str], object]) -> Render:
    """Give a writer of fixed-width columns, `width` characters in all.

    It tells `say` which columns found no room.
    """

    def render(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
        rows = list(batches)
        fitted = layout(columns, rows, width)
        for texts in (_headers(fitted), *(_cells(fitted, batch) for batch in rows)):
            _write_lines(file, pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*texts, " ")))
        if fitted.dropped:
            say(f"no room for {', '.join(fitted.dropped)}; ask for more with -w")

    return render


def _headers(fitted: Layout) -> Iterator[pa.Array]:
    for column, size in zip(fitted.columns, fitted.widths, strict=True):
        text = header(column, scaled=fitted.scales(column))[:size]
        yield pa.array([text.rjust(size) if column.kind in (INT, FLOAT) else text.ljust(size)])


def _cells(fitted: Layout, batch: pa.Table) -> Iterator[pa.Array]:
    for place, (column, size) in enumerate(zip(fitted.columns, fitted.widths, strict=True)):
        values = batch.column(place)
        if column.kind in (INT, FLOAT):
            scales = fitted.scales(column)
            texts = (
                pc.fill_null(scaled(values, column.unit), _UNKNOWN) if scales else _shown(values)
            )
            yield pc.utf8_lpad(texts, size)
        else:
            yield pc.utf8_rpad(_shortened(column, _shown(values), size), size)


_PATHS = ("layer", "trace", "line", "module")
"""Texts whose end tells more than their beginning."""


def _shortened(column: Column, texts: pa.Array, size: int) -> pa.Array:
    """Shorten texts to a width, and mark those that were; of numbers in a list keep whole ones."""
    if column.name in ("trace", "line"):
        texts = pc.replace_substring_regex(texts, r"^.*[/\\,]", "")  # `file.py:12`
    room = max(size - len(MARK), 0)
    if column.name in _PATHS:
        cut = pc.binary_join_element_wise(MARK, pc.utf8_slice_codeunits(texts, -room), "")
    else:
        kept = pc.utf8_slice_codeunits(texts, 0, room)
        if column.kind == NUMBERS:
            kept = pc.replace_substring_regex(kept, r"[^,]*$", "")
        cut = pc.binary_join_element_wise(kept, MARK, "")
    return pc.if_else(pc.greater(pc.utf8_length(texts), size), cut, texts)


def _shown(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Make texts of values, of one line each: a user's layer may have any name."""
    if pa.types.is_string(values.type):
        values = pc.replace_substring_regex(values, safe.UNSAFE, " ")
    if pa.types.is_floating(values.type):
        values = rounded(values)
    return pc.fill_null(_text(values), _UNKNOWN)


def _text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if values.type == pa.string() else values.cast(pa.string())


def _write_lines(file: BinaryIO, lines: pa.Array) -> None:
    if len(lines):
        file.write(("\n".join(lines.to_pylist()) + "\n").encode())
