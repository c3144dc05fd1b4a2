"""Streams of ranks that leave collectives together: one communicator, where nothing names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.placing import NOWHERE, Placed, fit, place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.report.across.columns import Columns

    Ints = NDArray[np.integer]

TOGETHER_NS = 25_000
"""Ranks of one communicator leave a collective within so much of each other, mostly."""
_ROUGHLY_NS = 4 * TOGETHER_NS
"""A few collectives tell roughly."""
_LOOKED_AT = 17
_TRIED = 16
"""Streams of other lengths that are tried, the nearest in that."""
_FEW = 4
"""Fewer collectives fit somewhere by chance."""


def by_leaving(columns: Columns, streams: list[Ints]) -> list[list[Placed]]:
    """Bundle the streams of ranks whose collectives end after the same times as the first one's."""
    bundles: list[list[Placed]] = []
    looks: list[Ints] = []
    for rows in streams:
        rank, look = columns.rank_of(rows), _look(columns, rows)
        fits = [
            (_near(columns, bundles[number][0].rows, rows), bundles[number])
            for number in _likely(looks, look)
            if columns.rank_of(bundles[number][-1].rows) != rank  # ranks come one after the other
        ]
        best, bundle = min(fits, key=lambda fit: fit[0].spread_ns, default=(NOWHERE, []))
        if best.spread_ns <= TOGETHER_NS:
            bundle.append(best)
        else:
            bundles.append([Placed(rows, 0, 0.0)])
            looks.append(look)
    return bundles


def _look(columns: Columns, rows: Ints) -> Ints:
    """Give how many collectives there are, and the ends of a few: enough to leave most out."""
    few = np.linspace(0, len(rows) - 1, _LOOKED_AT).astype(np.int64)
    return np.append(len(rows), columns.end_ns[rows[few]])


def _likely(looks: list[Ints], look: Ints) -> list[int]:
    """Choose the streams that are worth a closer look."""
    if not looks:
        return []
    apart = np.array(looks) - look
    ends = apart[:, 1:]
    spread = np.median(np.abs(ends - np.median(ends, axis=1, keepdims=True)), axis=1)
    longer = np.abs(apart[:, 0])
    same = np.flatnonzero((longer == 0) & (spread <= _ROUGHLY_NS))
    others = np.argsort(longer, kind="stable")[(longer == 0).sum() :][:_TRIED]
    found: list[int] = [*same.tolist(), *others.tolist()]
    return found


def _near(columns: Columns, reference: Ints, rows: Ints) -> Placed:
    """Place rows beside others; of as many, most are of other groups, and all begin alike."""
    if len(reference) == len(rows):
        return fit(columns, reference, rows)
    few = min(len(reference), len(rows)) < _FEW
    return NOWHERE if few else place(columns, reference, rows)
