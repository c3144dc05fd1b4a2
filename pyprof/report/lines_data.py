"""What `pyprof lines` says of a capture, small enough to send; that of several makes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyprof.report import advice, source, source_lines, steps_option
from pyprof.report.timeline import BLOCKING, timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.report.advice import Advice
    from pyprof.report.source import Source
    from pyprof.report.source_lines import SourceLines
    from pyprof.sets.engine import Engine


@dataclass(frozen=True, slots=True)
class Lines:
    """Source lines, and what could be won at them."""

    found: SourceLines
    advice: list[Advice]
    """All of it."""
    warnings: tuple[str, ...]

    @property
    def placed(self) -> list[Advice]:
        """The advice that names lines."""
        return [entry for entry in self.advice if any(part.line for part in entry.evidence)]


def lines(of: Source, chosen: str | None) -> Lines:
    """Look at a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    rows = steps_option.rows(of, chosen)
    timed = timeline(of.table.records, of.capture, rows)
    given = advice.advise(of.table, timed, of.capture, rows)
    blocking = [BLOCKING] if timed is not None and timed.blocking else []
    return Lines(
        source_lines.source_lines(of.table, rows),
        advice.without_rows(given),
        (*of.table.source.warnings, *blocking),
    )


def of_all(
    sources: Sequence[str],
    chosen: str | None,
    engine: Engine,
    begin: Callable[[str], object] = str,
) -> Lines:
    """Look at one file, or at all captures of a set. Raises as `lines` and `source.load` do."""
    return source.of_all(sources, partial(lines, chosen=chosen), merge, engine, begin=begin)


def merge(a: Lines, b: Lines) -> Lines:
    """Make what was found of two captures one."""
    return Lines(
        source_lines.merge(a.found, b.found),
        advice.merge(a.advice, b.advice),
        source.distinct(a.warnings, b.warnings),
    )
