"""Rows as text: CSV, fixed-width columns, or separated by blanks. Whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof import safe
from pyprof.errors import PyprofError
from pyprof.prof.columns import FLOAT, INT, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Render = Callable[[Sequence[Column], Iterable[pa.Table], BinaryIO], None]

_UNKNOWN = "-"
_DIGITS = 4  # significant digits of a float that people read


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


def in_width(width: int) -> Render:
    """Give a writer of fixed-width columns, `width` characters in all."""

    def render(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
        widths = _widths(columns, width)
        header = [pa.array([column.header]) for column in columns]
        for texts in (header, *(_narrow(columns, batch) for batch in batches)):
            cells = [
                _cell(text, column, size)
                for text, column, size in zip(texts, columns, widths, strict=True)
            ]
            _write_lines(file, pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*cells, " ")))

    return render


def _narrow(columns: Sequence[Column], batch: pa.Table) -> list[pa.Array]:
    texts = [_shown(batch.column(place)) for place in range(len(columns))]
    return [
        _last_frame(text) if column.name in ("trace", "line") else text
        for text, column in zip(texts, columns, strict=True)
    ]


def _last_frame(texts: pa.Array) -> pa.Array:
    """Keep `file.py:12` of a stack: there is no room for more."""
    return pc.replace_substring_regex(texts, r"^.*[/\\,]", "")


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    fixed = sum(column.width for column in columns) + len(columns) - 1
    flexible = [column for column in columns if not column.width]
    room = (width - fixed) // len(flexible) if flexible else 0
    least = max((len(column.header) for column in flexible), default=0)
    if width < fixed + len(flexible) * least:
        raise PyprofError(
            f"these columns need a width of at least {fixed + len(flexible) * least}; "
            "ask for more with -w, or, without --by, for fewer columns with -c"
        )
    return [column.width or room for column in columns]


def _cell(text: pa.Array, column: Column, size: int) -> pa.Array:
    cut = pc.utf8_slice_codeunits(text, 0, size)
    pad = pc.utf8_lpad if column.kind in (INT, FLOAT) else pc.utf8_rpad
    return pad(cut, size)


def _shown(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Make texts of values, of one line each: a user's layer may have any name."""
    if pa.types.is_string(values.type):
        values = pc.replace_substring_regex(values, safe.UNSAFE, " ")
    if pa.types.is_floating(values.type):
        values = _rounded(values)
    return pc.fill_null(_text(values), _UNKNOWN)


def _rounded(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    numbers = (
        values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = _DIGITS - 1 - np.floor(np.log10(np.abs(np.where(numbers == 0, 1, numbers))))
    places = np.nan_to_num(np.clip(scale, 0, 9)).astype(int)
    texts = [
        None if np.isnan(number) else f"{number:.{place}f}"
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())


def _text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if values.type == pa.string() else values.cast(pa.string())


def _write_lines(file: BinaryIO, lines: pa.Array) -> None:
    if len(lines):
        file.write(("\n".join(lines.to_pylist()) + "\n").encode())
