"""Rows as CSV, fixed-width columns or words separated by blanks; no number is truncated.

If numbers do not fit, their columns get wider, then they get a prefix; then texts are shortened;
what still does not fit is left out from the right end, with a note.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from pyprof import sanitize
from pyprof.errors import PyprofError
from pyprof.prof.columns.standard import FLOAT, INT, NUMBERS, Column
from pyprof.quantities import DASH
from pyprof.render.text.layout.numbers import rounded, scaled
from pyprof.render.text.layout.text_width import MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SCALABLE = ("ns", "FLOP", "byte")
_SHORTEST = 12
"""Width of a column whose texts are shortened most, unless it is narrower anyway."""
_SCALED, _NO_PREFIX = len("1.234k"), len("999")


@dataclass(frozen=True, slots=True)
class ColumnWidth:
    """The widths that one column needs."""

    column: Column
    whole: int
    """Width for every number as it is; 0 for texts."""
    least: int
    """The same, with lists of numbers cut after the first."""
    scaled: int
    """Width for numbers with prefixes."""

    @property
    def header(self) -> int:
        """The width of the header; headers that name a unit are never truncated."""
        return min(len(self.column.header), self.column.width or len(self.column.header))


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that are shown, and their widths."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    scaled: bool
    """Whether numbers that can have a prefix have one."""
    dropped: tuple[str, ...]

    def scales(self, column: Column) -> bool:
        """Whether a column's numbers have a prefix."""
        return self.scaled and scalable(column)


def scalable(column: Column) -> bool:
    """Whether a prefix keeps enough digits: for amounts it does, for identifiers it does not."""
    return column.kind in (INT, FLOAT) and column.unit in _SCALABLE and not column.exact


def header(column: Column, *, scaled: bool) -> str:
    """Return the header; numbers with a prefix carry their own unit."""
    return column.header.removesuffix("(ns)") if scaled else column.header


def _measure(column: Column, values: pa.Array | pa.ChunkedArray) -> tuple[int, int, int]:
    """The widths that some rows of a column need: whole, least and scaled."""
    if column.kind == NUMBERS:
        lengths = pc.utf8_length(values)
        first = pc.utf8_length(pc.replace_substring_regex(values, ",.*$", f",{MARK}"))
        return _longest(lengths), _longest(pc.min_element_wise(lengths, first)), _longest(lengths)
    if column.kind not in (INT, FLOAT):
        return 0, 0, 0
    if column.kind == FLOAT:
        full_width = _longest(pc.utf8_length(rounded(values)))
    else:
        full_width = max(len(str(end or 0)) for end in pc.min_max(values).as_py().values())
    with_prefix = _scaled_width(column, values, full_width) if scalable(column) else full_width
    return full_width, full_width, with_prefix


def _longest(lengths: pa.Array) -> int:
    return pc.max(lengths).as_py() or 1


def _scaled_width(column: Column, values: pa.Array | pa.ChunkedArray, full_width: int) -> int:
    """The maximum width of a number; extremes beyond the last prefix have more digits."""
    unit = len("ms") - 1 if column.unit == "ns" else 0
    if column.kind == INT and full_width <= _NO_PREFIX:
        return full_width + 2 * unit
    ends = [end for end in pc.min_max(values).as_py().values() if end is not None]
    sign = any(end < 0 for end in ends)
    texts = scaled(pa.array(ends, values.type), column.unit)
    return max(_SCALED + sign + unit, _longest(pc.utf8_length(texts)))


def layout(columns: Sequence[Column], batches: Sequence[pa.Table], width: int) -> Layout:
    """Fit columns into `width` characters; those at the right end that do not fit are dropped.

    Raises PyprofError if not even the first fits.
    """
    widths_needed = []
    for index, column in enumerate(columns):
        measured = [(0, 0, 0), *(_measure(column, batch.column(index)) for batch in batches)]
        widths_needed.append(ColumnWidth(column, *map(max, zip(*measured, strict=True))))
    for count in range(len(widths_needed), 0, -1):
        for widths, with_prefixes in _widths_to_try(widths_needed[:count]):
            if (left := width - sum(widths) - count + 1) >= 0:
                dropped = tuple(column.header for column in columns[count:])
                grown = tuple(_share_left(widths_needed[:count], widths, left))
                return Layout(tuple(columns[:count]), grown, with_prefixes, dropped)
    least = min(widths[0] for widths, _ in _widths_to_try(widths_needed[:1]))
    raise PyprofError(f"the first of these columns needs a width of at least {least}; increase -w")


def _widths_to_try(widths_needed: Sequence[ColumnWidth]) -> Iterator[tuple[list[int], bool]]:
    """The widths of the columns, and whether numbers have prefixes, from wide to narrow."""
    yield [max(one.column.width or one.header, one.whole) for one in widths_needed], False
    yield [_text(one) or max(one.header, one.whole) for one in widths_needed], False
    yield [_text(one) or _with_prefix(one) for one in widths_needed], True
    yield [min(_text(one), _SHORTEST) or _with_prefix(one) for one in widths_needed], True


def _text(needed: ColumnWidth) -> int:
    has_numbers = needed.column.kind in (INT, FLOAT, NUMBERS)
    return 0 if has_numbers else needed.column.width or needed.header


def _with_prefix(needed: ColumnWidth) -> int:
    if scalable(needed.column):
        return max(len(header(needed.column, scaled=True)), needed.scaled)
    return max(needed.header, needed.least)


def _share_left(
    widths_needed: Sequence[ColumnWidth], widths: Sequence[int], left: int
) -> list[int]:
    """Share what is left: shortened texts get their usual width, those without one the rest."""
    grown = [*widths]
    for index, one in enumerate(widths_needed):
        if one.column.kind not in (INT, FLOAT):
            more = min(left, max(one.column.width - grown[index], 0))
            grown[index] += more
            left -= more
    flexible = [index for index, one in enumerate(widths_needed) if not one.column.width]
    for index in flexible:
        grown[index] += left // len(flexible)
    return grown


def write_csv(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write RFC 4180 with every field in quotes; unknown values are empty."""
    header = ",".join(f'"{column.header}"' for column in columns)
    file.write(f"{header}\n".encode())
    options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
    for batch in batches:
        texts = [
            pc.fill_null(_render_text(batch.column(index)), "") for index in range(len(columns))
        ]
        csv.write_csv(pa.table(texts, [column.name for column in columns]), file, options)


def write_aligned(columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write fields separated by blanks; unknown values are `-`."""
    file.write((" ".join(column.header for column in columns) + "\n").encode())
    for batch in batches:
        texts = [format_values(batch.column(index)) for index in range(len(columns))]
        write_lines(file, pc.binary_join_element_wise(*texts, " "))


def write_columns(
    columns: Sequence[Column],
    batches: Iterable[pa.Table],
    file: BinaryIO,
    width: int,
    say: Callable[[str], object],
) -> None:
    """Write fixed-width columns, `width` characters in all; report to `say` what does not fit."""
    rows = list(batches)
    fitted = layout(columns, rows, width)
    headers = []
    for column, size in zip(fitted.columns, fitted.widths, strict=True):
        text = header(column, scaled=fitted.scales(column))[:size]
        is_number = column.kind in (INT, FLOAT)
        headers.append(pa.array([text.rjust(size) if is_number else text.ljust(size)]))
    for texts in (headers, *(_cells(fitted, batch) for batch in rows)):
        write_lines(file, pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*texts, " ")))
    if fitted.dropped:
        say(f"no room for {', '.join(fitted.dropped)}; increase -w")


def _cells(fitted: Layout, batch: pa.Table) -> Iterator[pa.Array]:
    for index, (column, size) in enumerate(zip(fitted.columns, fitted.widths, strict=True)):
        values = batch.column(index)
        if column.kind in (INT, FLOAT):
            scales = fitted.scales(column)
            texts = (
                pc.fill_null(scaled(values, column.unit), DASH) if scales else format_values(values)
            )
            yield pc.utf8_lpad(texts, size)
        else:
            yield pc.utf8_rpad(_shorten(column, format_values(values), size), size)


_PATHS = ("layer", "trace", "line", "module")
"""Texts whose end matters more than their beginning."""


def _shorten(column: Column, texts: pa.Array, size: int) -> pa.Array:
    """Shorten texts to a width, with a mark; lists of numbers are cut between two numbers."""
    if column.name in ("trace", "line"):
        texts = without_folders(texts)
    kept = max(size - len(MARK), 0)
    if column.name in _PATHS:
        cut = pc.binary_join_element_wise(MARK, pc.utf8_slice_codeunits(texts, -kept), "")
    else:
        beginning = pc.utf8_slice_codeunits(texts, 0, kept)
        if column.kind == NUMBERS:
            beginning = pc.replace_substring_regex(beginning, r"[^,]*$", "")
        cut = pc.binary_join_element_wise(beginning, MARK, "")
    return pc.if_else(pc.greater(pc.utf8_length(texts), size), cut, texts)


def without_folders(texts: pa.Array) -> pa.Array:
    """Reduce `folder/file.py:12`, or a stack of such lines, to the innermost `file.py:12`."""
    return pc.replace_substring_regex(texts, r"^.*[/\\,]", "")


def format_values(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Format values as texts of one line each: a user's layer may have any name."""
    if pa.types.is_string(values.type):
        values = pc.replace_substring_regex(values, sanitize.UNSAFE, " ")
    if pa.types.is_floating(values.type):
        values = rounded(values)
    return pc.fill_null(_render_text(values), DASH)


def _render_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values if values.type == pa.string() else values.cast(pa.string())


def write_lines(file: BinaryIO, lines: pa.Array) -> None:
    """Write a line for each text."""
    if len(lines):
        file.write(("\n".join(lines.to_pylist()) + "\n").encode())
