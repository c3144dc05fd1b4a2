"""Forward work done again in the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.advice.registry import rule

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.registry import Advice


@rule
def recomputation(case: Case) -> Advice | None:
    """Find activation checkpointing: modules entered inside a backward pass, or its own node."""
    records = case.table.records
    layer, texts = records.coded("layer"), records.coded("seqMarker")
    entered = np.array([*(bool(value) for value in layer.values), False])[layer.index]
    node = np.array([*(any("Checkpoint" in text for text in value or ()) for value in texts.values),
                     False])[texts.index]  # fmt: skip
    marker = records.coded("marker")
    called = np.array([*(bool(value) for value in marker.values), False])[marker.index]
    rows = np.flatnonzero(case.is_one("dir", "bprop") & called & (entered | node))
    return case.advice(
        "recomputation",
        "the backward pass computes forward work again (activation checkpointing)",
        "if memory allows, checkpoint fewer layers, or only cheap ops (selective checkpointing)",
        rows,
        case.most(rows, case.ns[rows]),
    )
