"""Which step of the loop each row belongs to, and which part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, or_null, sum_if_known
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Int64Array
    from pyprof.prof.table import Table


PARTS = {
    "fprop": "forward",
    "bprop": "backward",
    "optim": "optimizer",
    "comm": "communication",
    "copy": "copy",
}
"""Parts of a training step, by what records call them."""


@dataclass(frozen=True, slots=True)
class StepWork:
    """What one step, or those of a phase, worked on, and how long."""

    tokens: int | None = None
    """Without padding; None if not all of the steps state theirs."""
    duration_ns: int | None = None


@dataclass(frozen=True, slots=True)
class StepRows:
    """The steps of some rows."""

    of_row: Int64Array
    """The step of each row, from 0; MISSING if it is in none."""
    phases: tuple[str, ...] = ()
    """The phase of each step, from ranges around it: prefill, decode or mixed; "" if unknown."""
    tokens: tuple[int | None, ...] = ()
    """Tokens of each step without padding, from these ranges; None if unknown."""
    duration_ns: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Length of each step, from the GPU's last end in the step before to that in this one."""

    def by_step(self) -> Mapping[int | str | None, StepWork]:
        """Each step's work, by its number."""
        stated = zip_longest(self.tokens, self.duration_ns.tolist())
        return {number: StepWork(tokens, took) for number, (tokens, took) in enumerate(stated)}

    def by_phase(self) -> Mapping[int | str | None, StepWork]:
        """Add up the steps' work by phase; empty without a serving engine."""
        of_phase: dict[str, list[StepWork]] = {}
        for phase, work in zip(self.phases, self.by_step().values(), strict=False):
            of_phase.setdefault(phase, []).append(work)
        return {
            phase: StepWork(
                sum_if_known([work.tokens for work in works]),
                sum_if_known([work.duration_ns for work in works]),
            )
            for phase, works in of_phase.items()
        }


def numbers(table: Table) -> pa.Array:
    """Step of each row; null outside of all steps, or if they were not looked for."""
    if table.steps is None:
        return pa.nulls(table.records.rows, pa.int64())
    return or_null(table.steps.of_row)


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
