"""What the user could change, and how much time it could win: rules over rows and timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.advice.case import Case
from pyprof.report.advice.finding import Advice, Evidence
from pyprof.report.advice.registry import (
    in_order,
    merge_advice,
    renumbered,
    rules,
    without_rows,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyprof.prof.table import Table
    from pyprof.report.analysis.timeline import Timeline
    from pyprof.schema import Capture

__all__ = ["Advice", "Evidence", "advise", "merge_advice", "renumbered", "without_rows"]

_LEAST_SHARE = 0.001
"""What could win less of the time is not worth a line."""


def advise(
    table: Table,
    timeline: Timeline | None = None,
    capture: Capture | None = None,
    rows: NDArray[np.bool_] | None = None,
) -> list[Advice]:
    """Apply every rule to all rows, or those chosen; what could be won most comes first.

    Advice whose gain cannot be said comes last. Rules that need what is not given stay silent.
    """
    case = Case(table, timeline, capture, rows)
    least = _LEAST_SHARE * case.span_ns
    entries = [advice for rule in rules().values() if (advice := rule(case)) is not None]
    worthwhile = [entry for entry in entries if entry.gain_ns is None or entry.gain_ns > least]
    return in_order(worthwhile)
