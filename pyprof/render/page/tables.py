"""Tables that a page can sort and filter, and how pages name what they show."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from pyprof.arrays import MISSING
from pyprof.prof.processor import CPU
from pyprof.quantities import DASH, duration
from pyprof.quantities import number as format_number
from pyprof.render.text.formatting import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.answers.page.report_answer import UsedDevice
    from pyprof.answers.summary_answer import DeviceUse


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. A text has neither number nor part."""

    text: str
    number: float | None = None
    """What it sorts by; None for a text, and for a number that is not known."""
    part: str | None = None
    """Length of a bar behind it, in %."""
    _: KW_ONLY
    note: str = ""
    """Shown while the pointer rests on it."""
    css_class: str = ""
    """Class of a text, for its colour or where it is cut."""
    value: str = ""
    """The value that filters and CSV use, if it is not the text."""


class Heading(NamedTuple):
    """The heading of a column."""

    title: str
    is_text: bool
    name: str = ""
    """Name in filters (`tc=0`) and CSV; "" if it is the title."""
    unit: str = ""
    """Unit of the numbers: `ns`, `%`."""

    @property
    def csv(self) -> str:
        """Name the column, with its unit, as CSV has it."""
        name = self.name or self.title
        return f"{name}_{self.unit}" if self.unit.isalpha() else name


def of_texts(title: str, name: str = "") -> Heading:
    """Head a column of texts."""
    return Heading(title, is_text=True, name=name)


def of_numbers(title: str, name: str = "", unit: str = "") -> Heading:
    """Head a column of numbers."""
    return Heading(title, is_text=False, name=name, unit=unit)


TENSOR_CORES = of_texts("Tensor Cores", "tc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sortable:
    """A table that the page can sort and filter."""

    columns: Sequence[Heading]
    rows: Sequence[Sequence[Cell]]
    left_out: int = 0
    """Rows that the page leaves out to stay small."""
    left_out_ns: int = 0
    """Summed time of these rows."""
    keys: Sequence[str | None] = ()
    """The selection of each row; () if rows cannot be selected."""
    less: str = "shorter"
    """How the rows that are left out compare to those shown: `shorter` or `smaller`."""

    @property
    def keyed(self) -> Iterator[tuple[Sequence[Cell], str | None]]:
        """Yield each row with its key."""
        return zip(self.rows, self.keys or [None] * len(self.rows), strict=True)

    @property
    def left_out_time(self) -> str:
        """Format the time of the rows that are left out."""
        return duration(self.left_out_ns)


T = TypeVar("T")
Column: TypeAlias = "tuple[Heading, Callable[[T], Cell]]"
"""A heading, and what makes the column's cell of an entry."""


def sortable(
    entries: Sequence[T],
    columns: Sequence[Column[T]],
    max_rows: int,
    *,
    time_ns: Callable[[T], int] | None = None,
    key: Callable[[T], str | None] | None = None,
    less: str = "shorter",
) -> Sortable:
    """Tabulate the first entries; `time_ns` is the time of an entry, `key` what a click selects."""
    shown, rest = entries[:max_rows], entries[max_rows:]
    return Sortable(
        columns=[heading for heading, _ in columns],
        rows=[[cell(entry) for _, cell in columns] for entry in shown],
        left_out=len(rest),
        left_out_ns=sum(map(time_ns, rest)) if time_ns else 0,
        keys=[key(entry) for entry in shown] if key else (),
        less=less,
    )


MAX_LETTERS = 300
PATH = "path"
"""Class of texts that are cut at their beginning, since their end matters more."""
WORD = "word"
"""Class of texts that are never cut nor broken: each is one of a few words."""


def text(value: str | None, note: str = "", css_class: str = "") -> Cell:
    """Make a cell of text; very long ones are cut, and end with `...`."""
    shown = DASH if value is None else value
    cut = shown if len(shown) <= MAX_LETTERS else f"{shown[:MAX_LETTERS]}..."
    return Cell(cut, note=note[:MAX_LETTERS], css_class=css_class)


def time(ns: float | None) -> Cell:
    """Make a cell of a time."""
    return Cell(duration(ns), ns)


def amount(value: float | None) -> Cell:
    """Make a cell of a count."""
    return Cell(count(value), value)


def rate(value: float | None, unit: float) -> Cell:
    """Make a cell of a rate in some unit."""
    scaled = None if value is None else value / unit
    return Cell(format_number(scaled), scaled)


def share(fraction: float | None) -> Cell:
    """Make a cell of a share with a bar behind it."""
    if fraction is None:
        return Cell(DASH)
    percent = 100 * fraction
    return Cell(f"{percent:.1f} %", percent, f"{min(percent, 100):.1f}")


def tensor_cores(used: str | None) -> Cell:
    """Make a cell that says whether Tensor Cores were used."""
    word = {"1": "used", "0": "not used", "?": "unknown"}.get(used or "")
    return replace(text(word, css_class=WORD), value=used or DASH)


_FOLDERS = re.compile(r"(?<![^\\/\s'\"(])[^\\/\s'\"(]*(?:[\\/][^\\/\s'\"]+)+[\\/]")


def without_folders(sentence: str) -> str:
    """Leave folders out of the paths in a sentence: they may show who captured it, and where."""
    return _FOLDERS.sub("", sentence)


def device_name(device: UsedDevice | DeviceUse) -> str:
    """Name a GPU, and the rank, or process, that used it."""
    number = "" if device.device is None or device.processor == CPU else f" {device.device}"
    process = "" if device.pid == MISSING else f", process {device.pid}"
    owner = process if device.rank is None else f", rank {device.rank}"
    return f"{device.processor}{number}{owner}"


def shares(time_ns: Mapping[str, int]) -> list[tuple[str, str, float]]:
    """Name, time and share of each entry."""
    total_ns = max(sum(time_ns.values()), 1)
    return [(name, duration(ns), ns / total_ns) for name, ns in time_ns.items()]
