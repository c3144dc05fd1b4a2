"""Forward work done again in the backward pass."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.parse.texts import where
from pyprof.report import api
from pyprof.report.advice.registry import rule
from pyprof.report.intervals import EMPTY, Intervals, union_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice

_NODE = "CheckpointFunctionBackward"


@rule(
    "an op that a backward node calls for itself, in no module's forward",
)
def recomputation(case: Case) -> Advice | None:
    """Find activation checkpointing: forward ops inside its node, or modules in a backward pass.

    The first is torch.utils.checkpoint's reentrant variant, which only a capture tells; in the
    other, hooks of any backward node call the modules again.
    """
    records = case.table.records
    layer, marker = (records.coded(name) for name in ("layer", "marker"))
    entered, called = (
        np.array([*(bool(value) for value in part.values), False])[part.index]
        for part in (layer, marker)
    )
    again = case.is_one("dir", "bprop") & called & entered
    inside = _inside(api.launches(records)[0], _checkpoints(case))
    rows = np.flatnonzero(again | (case.is_one("dir", "fprop") & inside))
    return case.advice(
        "recomputation",
        "the backward pass computes forward work again (activation checkpointing)",
        "if memory allows, checkpoint fewer layers, or only cheap ops (selective checkpointing)",
        rows,
        case.most(rows, case.ns[rows]),
    )


def _checkpoints(case: Case) -> Intervals:
    if case.capture is None:
        return EMPTY
    ranges = case.capture.ranges
    is_node = where(ranges.column("text"), partial(pc.match_substring, pattern=_NODE))
    found = ranges.filter(is_node)
    start, end = (pc.fill_null(found.column(name), -1).to_numpy() for name in ("start", "end"))
    return union_of(start, end)


def _inside(instant: NDArray[np.int64], held: Intervals) -> NDArray[np.bool_]:
    return np.asarray(held.inside(instant, instant + 1) > 0)
