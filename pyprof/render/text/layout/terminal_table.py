"""A table as wide as the terminal: units scaled, long names cut in the middle, no number cut.

Columns that do not fit even with short names are left out, the least informative first, with a
note.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from pyprof.prof.columns.standard import FLOAT, INT, TEXT, Column
from pyprof.quantities import DASH
from pyprof.render.text.formatting import heading
from pyprof.render.text.layout.fixed_width import (
    format_values,
    header,
    scalable,
    without_folders,
    write_lines,
)
from pyprof.render.text.layout.numbers import scaled
from pyprof.render.text.layout.text_width import MARK, cells, cut_end, cut_middle, pad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SCREEN = ("op", "line", "kernel", "sil", "tc", "flops", "eff", "bound", "why")
"""Columns that answer which op is slow, where, and why."""
FULL = (
    *("idx", "dir", "module", "op", "line", "kernel", "params", "sil", "tc", "flops", "bytes"),
    *("tflops", "gbs", "ai", "eff", "bound", "family", "via", "why"),
)
"""Columns that `--full` shows."""

_TELLING = ("sil", "op", "eff", "bound", "tc", "line", "kernel", "flops", "why")
"""The columns of `SCREEN`, the most informative first; the last one is left out first."""
_EXTREMES = ("min", "max", "tflops_min", "tflops_max")
"""The columns of groups that are left out first; then the last ones."""
_SHORTEST = 12
"""Minimum width in cells of a text that is cut."""
_NARROW = 4
"""The same if not even the last two columns fit otherwise."""
_SENTENCES = ("why", "params", "peak")
"""Texts whose beginning matters more than their end."""


class _Shown:
    """A column with its values as texts: the distinct ones, and the index of each row's."""

    def __init__(self, column: Column, batches: Sequence[pa.ChunkedArray], *, full: bool) -> None:
        scales = not full and scalable(column)
        if column.name == "sil" and scales:
            column = replace(column, header="Time")
        self.column = column
        self.header = header(column, scaled=scales)
        self.numeric = column.kind in (INT, FLOAT)
        texts = [
            pc.fill_null(scaled(values, column.unit), DASH) if scales else format_values(values)
            for values in batches
        ]
        if column.name in ("trace", "line") and not full:
            texts = [without_folders(each) for each in texts]
        encoded = pa.chunked_array(texts, pa.string()).dictionary_encode().combine_chunks()
        self.index, self.values = encoded.indices, encoded.dictionary.to_pylist()
        self.natural = max([cells(self.header), *map(cells, self.values)])

    @property
    def least(self) -> int:
        """Minimum width in cells: texts of names and sentences may be cut."""
        return min(self.natural, _SHORTEST) if self.cuts else self.natural

    @property
    def cuts(self) -> bool:
        """Whether its texts may be truncated: not numbers, nor keywords such as `bprop`."""
        return self.column.kind == TEXT and self.column.name not in ("tc", "bound", "dir", "kind")

    def lines(self, room: int) -> pa.Array:
        """Return the text of each row, padded to `room` cells."""
        cut = cut_end if self.column.name in _SENTENCES else cut_middle
        texts = [cut(text, room, MARK) if self.cuts else text for text in self.values]
        return pa.array([self._pad(text, room) for text in texts], pa.string()).take(self.index)

    def title(self, room: int) -> str:
        """Return the header, padded to `room` cells."""
        return self._pad(self.header[: max(room, 1)] if self.cuts else self.header, room)

    def _pad(self, text: str, room: int) -> str:
        return pad(text, room, left=not self.numeric)


def write(
    columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO,
    room: int, say: Callable[[str], object], *, coloured: bool,
) -> None:  # fmt: skip
    """Write a table `room` cells wide, and report to `say` what does not fit."""
    shown = _read(columns, batches, full=False)
    kept = [*shown]  # columns are left out until the others fit; two stay in any case
    while len(kept) > 2 and sum(one.least + 1 for one in kept) - 1 > room:  # noqa: PLR2004 - a name and its time
        kept.remove(max(kept, key=lambda one: _rank(one, kept)))
    gap = 2 if sum(one.natural + 2 for one in kept) - 2 <= room else 1
    _write(kept, _widths(kept, room), gap, file, coloured=coloured)
    dropped = [one.header for one in shown if one not in kept]
    if dropped:
        say(f"no room for {', '.join(dropped)}; widen the terminal, or use --full")


def write_full(
    columns: Sequence[Column], batches: Iterable[pa.Table], file: BinaryIO, *, coloured: bool
) -> None:
    """Write a table as wide as its texts and exact numbers."""
    shown = _read(columns, batches, full=True)
    _write(shown, [one.natural for one in shown], 2, file, coloured=coloured)


def _read(columns: Sequence[Column], batches: Iterable[pa.Table], *, full: bool) -> list[_Shown]:
    rows = list(batches)
    return [
        _Shown(column, [batch.column(index) for batch in rows], full=full)
        for index, column in enumerate(columns)
    ]


def _rank(one: _Shown, among: Sequence[_Shown]) -> int:
    name = one.column.name
    if name in _TELLING and any(one.column.name == "sil" for one in among):
        return _TELLING.index(name)
    return among.index(one) + len(among) * (name in _EXTREMES)


def _widths(kept: Sequence[_Shown], room: int) -> list[int]:
    """Share what is left among the texts that were cut, as evenly as they need it."""
    widths = [one.least for one in kept]
    left = room - sum(widths) - len(kept) + 1
    if left < 0:  # two columns in very little room
        return [min(one.least, _NARROW) if one.cuts else one.least for one in kept]
    missing = [one.natural - one.least for one in kept]  # 0 for what is never cut
    order = sorted(range(len(kept)), key=missing.__getitem__)
    for place, index in enumerate(order):
        more = min(missing[index], left // (len(order) - place))
        widths[index] += more
        left -= more
    return widths


def _write(
    shown: Sequence[_Shown], widths: Sequence[int], gap: int, file: BinaryIO, *, coloured: bool
) -> None:
    titles = [one.title(width) for one, width in zip(shown, widths, strict=True)]
    title = (" " * gap).join(titles).rstrip()
    file.write(f"{heading(title) if coloured else title}\n".encode())
    texts = [one.lines(width) for one, width in zip(shown, widths, strict=True)]
    write_lines(file, pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*texts, " " * gap)))
