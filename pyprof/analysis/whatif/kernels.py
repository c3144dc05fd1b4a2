"""What changes do to the rows of a capture: their times, with intervals, and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.answers.whatif_answer import PredictedTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.analysis.back_test import Interval
    from pyprof.arrays import Int64Array, Mask


NO_BANDWIDTH = "the GPU's bandwidth is unknown"
"""Why nothing is predicted by roofs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """All rows after the changes made so far."""

    context: RuleContext
    ns: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bytes: NDArray[np.float64]
    """The least bytes that each row moves; NaN if unknown."""
    attention: Mask
    """Rows that a fused attention kernel has replaced."""
    dtype: str | None = None
    """The type that float32 was changed to."""

    def retimed(self, rows: Int64Array, ns: NDArray[np.float64], interval: Interval) -> Kernels:
        """Return the rows with new times of some; errors of several changes are independent."""
        expected, low, high = self.ns.copy(), self.low.copy(), self.high.copy()
        before = np.maximum(self.ns[rows], 1)
        below = np.log(np.maximum(self.low[rows], 1) / before)
        above = np.log(np.maximum(self.high[rows], 1) / before)
        expected[rows] = ns
        low[rows] = ns * np.exp(-np.hypot(below, np.log(min(interval.low, 1.0))))
        high[rows] = ns * np.exp(np.hypot(above, np.log(max(interval.high, 1.0))))
        return replace(self, ns=expected, low=low, high=high)

    @property
    def span(self) -> PredictedTime:
        """Sums of all rows."""
        return PredictedTime(
            now=round(float(self.context.ns.sum())),
            low=round(float(self.low.sum())),
            expected=round(float(self.ns.sum())),
            high=round(float(self.high.sum())),
        )


def unchanged(context: RuleContext) -> Kernels:
    """Return the rows of a capture as recorded."""
    moved = context.table.costs.bytes.astype(float)
    return Kernels(
        context=context,
        ns=context.ns,
        low=context.ns,
        high=context.ns,
        bytes=np.where(moved >= 0, moved, np.nan),
        attention=np.zeros(len(context.ns), bool),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a change would do to the time of kernels."""

    change: str
    """As on the command line: `--dtype tf32`."""
    kernels: Kernels
    """All rows after the change."""
    rows: Int64Array
    """The rows of the table whose time changes, from 0."""
    formula: str
    assumption: str
    validation: str
    """The data that the rule was tested on, and its error there."""
    code: str
    """The change in the program."""
