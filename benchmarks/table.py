"""How fast PyProf is beside the least that the same work can cost, as one table.

    python benchmarks/table.py [WORD...] [--markdown]

Runs every `bench_*.py` beside this file, or those whose name holds one of the words. Such a module
has a function `rows() -> Iterable[Row]`, which measures ours and the limit in one run. What else
the machine does can only add: of several runs the one that took least processor time counts.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Row(NamedTuple):
    """A line of the table: some work, the least that it can cost, and what it costs here."""

    work: str
    limit: str
    """What it is compared with, and the figure: `json.load, 0.61 s`."""
    ours: str
    """The figure, with its unit."""
    ratio: float
    """Ours to the limit, or the inverse, as in the aim."""
    memory_mb: float | None
    """The most held at once; None if it does not matter."""
    aim: str
    """What the ratio or the figure should be: `≤ 1.7`."""


TITLES = ("work", "compared with", "PyProf", "ratio", "memory, MB", "aim")


def modules(words: Sequence[str]) -> list[str]:
    """Return the names of the benchmarks in this folder, of those with one of the words, if any."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    return [name for name in names if not words or any(word in name for word in words)]


def measured(names: Iterable[str]) -> Iterator[Row]:
    """Run the benchmarks one after the other."""
    for name in names:
        yield from importlib.import_module(name).rows()


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    memory = "" if row.memory_mb is None else f"{row.memory_mb:,.0f}"
    return (row.work, row.limit, row.ours, f"{row.ratio:.2f}", memory, row.aim)


def markdown(row: Sequence[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(row)} |"


def plain(row: Sequence[str]) -> str:
    """Return a line for the terminal."""
    widths = (58, 34, 12, 6, 10, 8)
    return "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def machine() -> str:
    """Describe the machine, with the date."""
    versions = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    load = "{:.1f} {:.1f} {:.1f}".format(*os.getloadavg())
    day = dt.datetime.now(tz=dt.timezone.utc).date()
    return f"{day}, {os.cpu_count()} cores, {versions}, load {load}"


def main() -> None:
    """Print the table, each line as soon as it is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("word", nargs="*")
    parser.add_argument("--markdown", action="store_true", help="as Markdown")
    options = parser.parse_args()
    line = markdown if options.markdown else plain
    print(machine(), end="\n\n")
    print(line(TITLES))
    if options.markdown:
        print(line(["---"] * len(TITLES)))
    for row in measured(modules(options.word)):
        print(line(cells(row)), flush=True)


if __name__ == "__main__":
    sys.modules["table"] = sys.modules["__main__"]  # the benchmarks import Row from here
    main()
