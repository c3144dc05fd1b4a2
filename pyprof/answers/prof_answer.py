"""The answer of `pyprof prof`: rows with the chosen columns, groups of rows, or one row."""

from __future__ import annotations

from dataclasses import dataclass

from pyprof.answers import Rows, answer
from pyprof.answers.base import Answer
from pyprof.answers.parts import KnownCost


@dataclass(frozen=True, slots=True)
class ColumnMeaning:
    """A column of the rows."""

    key: str
    """Its name in `rows`: with the unit."""
    column: str
    """Its name for -c, --where and --sort."""
    unit: str
    """Its unit; empty for texts and counts."""
    meaning: str
    """What it holds; empty for measures of groups, whose names explain them."""


@answer("prof")
@dataclass(frozen=True, slots=True, kw_only=True)
class Prof(Answer):
    """Rows of kernels, copies and fills, or groups of them."""

    known_cost: KnownCost
    """How much of the time of the chosen rows has a known cost, and why the rest has none."""
    where: str | None
    """The conditions of --where that chose them; null without --where: all rows are."""
    by: str | None
    """The columns that rows are grouped by, joined by commas; null: they are not grouped."""
    row_count: int
    """Rows of the captures, chosen or not."""
    rows_left_out: int
    """Chosen rows, or groups, that --top left out."""
    columns: tuple[ColumnMeaning, ...]
    """The columns of `rows`, in their order."""
    rows: Rows
    """Each row, or group, as an object; in one line of the document. `idx` identifies a row."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stage of costing."""

    title: str
    """Which."""
    lines: tuple[str, ...]
    """What it saw, and what it decided."""


@answer("explain")
@dataclass(frozen=True, slots=True)
class Explanation(Answer):
    """How a row came to its numbers: `prof --explain ROW`."""

    row_id: int
    """`idx` of the row."""
    sections: tuple[Section, ...]
    """The stages, in their order."""


SECTIONS = ("GPU activities", "CPU ops", "API calls")
"""Sections of nvprof's tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NvprofLine:
    """A line of nvprof's tables."""

    section: str
    """GPU activities, CPU ops or API calls."""
    name: str
    """Kernel, copy, op or call."""
    share: float | None
    """Share of the section's time; null if none of it is known."""
    total_ns: int | None
    """Summed time; null if none of its calls has a possible time. So are the others."""
    calls: int
    """How many."""
    mean_ns: float | None
    """Mean; null as `total_ns`."""
    min_ns: int | None
    """Shortest; null as `total_ns`."""
    max_ns: int | None
    """Longest; null as `total_ns`."""


@answer("nvprof")
@dataclass(frozen=True, slots=True)
class NvprofTables(Answer):
    """nvprof's two tables: `prof --summary nvprof`."""

    lines: tuple[NvprofLine, ...]
    """Section by section, the most time first."""
