"""The rows that `--where` leaves of a capture, and how many and how long they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.phases import with_steps
from pyprof.prof import where
from pyprof.prof.processor import processor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.where import Condition

OF_STEPS = frozenset({"step", "phase"})
"""Columns for which steps have to be looked for."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """What was asked for, and how much of all rows, or those of the chosen steps, it is."""

    text: str
    rows: int
    all_rows: int
    time_ns: int
    all_ns: int
    processor: str

    def plus(self, other: Filtered) -> Filtered:
        """Add another capture's rows."""
        return replace(
            self,
            rows=self.rows + other.rows,
            all_rows=self.all_rows + other.all_rows,
            time_ns=self.time_ns + other.time_ns,
            all_ns=self.all_ns + other.all_ns,
        )


def choose(
    source: Source, rows: Mask | None, asked: Sequence[Condition]
) -> tuple[Mask | None, Filtered | None]:
    """Leave of some rows (None: all) those that fulfil all conditions, and say how much that is."""
    if not asked:
        return rows, None
    table = source.table
    if table.steps is None and OF_STEPS & {condition.name for condition in asked}:
        table = with_steps(source)
    before = np.ones(table.records.rows, bool) if rows is None else rows
    kept = before & np.asarray(where.rows(table, asked))
    ns = table.duration_ns
    return kept, Filtered(
        text_of(asked),
        int(kept.sum()),
        int(before.sum()),
        int(ns[kept].sum()),
        int(ns[before].sum()),
        processor_of(table.records),
    )


def text_of(asked: Sequence[Condition]) -> str:
    """Write conditions as one text: `dir=bprop and tc=0`."""
    return " and ".join(f"{one.name}{one.operator}{one.value}" for one in asked)


def merge_filtered(a: Filtered | None, b: Filtered | None) -> Filtered | None:
    """Add what was kept of two captures."""
    return a.plus(b) if a is not None and b is not None else a or b
