"""The answer of `pyprof prof`: rows with the chosen columns, groups of rows, or one row."""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.answers import Rows, answer
from pyprof.answers.base import Answer
from pyprof.answers.parts import KnownCost


@dataclass(frozen=True, slots=True)
class ColumnMeaning:
    """The meaning of a column of `rows`."""

    key: str
    """Its name in `rows`, which ends with the unit."""
    column: str
    """Its name for -c, --where and --sort."""
    unit: str
    """Its unit; empty for text and counts."""
    meaning: str
    """What it contains; empty for measures of groups, whose names explain them."""


@answer("prof")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prof(Answer):
    """Rows of kernels, copies and fills, or groups of them."""

    known_cost: KnownCost
    """How much of the time is that of rows with a known cost, and why the rest is not."""
    where: str | None
    """The conditions of --where that chose the rows; null without --where."""
    by: str | None
    """The columns that rows are grouped by, separated by commas; null if they are not grouped."""
    row_count: int
    """Number of rows in the captures, whether chosen or not."""
    rows_left_out: int
    """Number of chosen rows or groups that --top left out."""
    columns: tuple[ColumnMeaning, ...]
    """The columns of `rows`, in their order."""
    rows: Rows
    """Each row or group as an object, on one line of the document. `idx` identifies a row."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stage of costing."""

    title: str
    """The name of the stage."""
    lines: tuple[str, ...]
    """What the stage was given and what it decided."""


@answer("explain")
@dataclass(frozen=True, slots=True)
class Explanation(Answer):
    """How the numbers of a row were computed: `prof --explain ROW`."""

    row_id: int
    """`idx` of the row."""
    sections: tuple[Section, ...]
    """The stages, in their order."""


SECTIONS = ("GPU activities", "CPU ops", "API calls")
"""Sections of nvprof's tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvprofLine:
    """A row of nvprof's tables."""

    section: str
    """GPU activities, CPU ops or API calls."""
    name: str
    """Kernel, copy, op or call."""
    share: float | None
    """Share of the section's time; null if that is unknown."""
    total_ns: int | None
    """Summed time; null if no call has a valid time."""
    calls: int
    """Number of calls, or of runs of the kernel or copy."""
    mean_ns: float | None
    """Mean; null if `total_ns` is."""
    min_ns: int | None
    """Shortest; null if `total_ns` is."""
    max_ns: int | None
    """Longest; null if `total_ns` is."""


@answer("nvprof")
@dataclass(frozen=True, slots=True)
class NvprofTables(Answer):
    """nvprof's two tables: `prof --summary nvprof`."""

    lines: tuple[NvprofLine, ...]
    """Sorted by section, then by time, the longest first."""
