"""The rows that `--where` leaves of a capture, and how many and how long they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.answers.parts import ChosenRows
from pyprof.prof import where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source
    from pyprof.prof.where import Condition

OF_STEPS = frozenset({"step", "phase"})
"""Columns that need the steps to be found first."""


def choose(
    source: Source, rows: Mask | None, asked: Sequence[Condition]
) -> tuple[Mask | None, ChosenRows | None]:
    """Filter rows (None: all) by all conditions; also return how much is left."""
    if not asked:
        return rows, None
    table = source.table
    if table.steps is None and OF_STEPS & {condition.name for condition in asked}:
        from pyprof.analysis.summary.phases import with_steps  # noqa: PLC0415 - seldom asked for

        table = with_steps(source)
    before = np.ones(table.records.rows, bool) if rows is None else rows
    kept = before & np.asarray(where.rows(table, asked))
    ns = table.duration_ns
    return kept, ChosenRows(
        where=text_of(asked),
        row_count=int(kept.sum()),
        all_row_count=int(before.sum()),
        time_ns=int(ns[kept].sum()),
        all_time_ns=int(ns[before].sum()),
    )


def text_of(asked: Sequence[Condition]) -> str:
    """Write conditions as one text: `dir=bprop and tc=0`."""
    return " and ".join(f"{one.name}{one.operator}{one.value}" for one in asked)
