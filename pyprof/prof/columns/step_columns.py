"""Columns of steps: which one each row is of, and what part of the work that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING
from pyprof.prof.step_rows import PARTS
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from pyprof.prof.table import Table


def numbers(table: Table) -> pa.Array:
    """Step of each row; null outside of all steps, or if they were not looked for."""
    if table.steps is None:
        return pa.nulls(table.records.rows, pa.int64())
    of_row = table.steps.of_row
    return pa.array(of_row, mask=of_row == MISSING)


def phases(table: Table) -> DictionaryColumn:
    """Phase of each row's step; for training the part of the step, if known."""
    direction = table.records.dictionary("dir")
    parts = [PARTS.get(name or "") for name in direction.values]
    own = DictionaryColumn(direction.index, parts)
    if table.steps is None or not any(table.steps.phases):
        return own
    known = [phase or None for phase in table.steps.phases]
    says = np.array([*(phase is not None for phase in known), False])
    of_row = np.where(table.steps.of_row < len(known), table.steps.of_row, MISSING)
    index = np.where(says[of_row], len(parts) + of_row, own.index)
    return DictionaryColumn(index, [*parts, *known])
