"""Streams of ranks that leave collectives together: one communicator, where nothing names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.placing import NOWHERE, Placed, first, fit, place

if TYPE_CHECKING:
    from pyprof.arrays import Integers
    from pyprof.report.across.columns import Columns


TOGETHER_NS = 25_000
"""Ranks of one communicator leave a collective within so much of each other, mostly."""
_ROUGHLY_NS = 4 * TOGETHER_NS
"""A few collectives tell roughly."""
_LOOKED_AT, _LIKEST = 17, 4
"""By so many of their ends the likest bundles are chosen; so many are looked at closely."""
_TRIED, _MOST = 16, 256
"""With how many others, the nearest in number, so many are tried that nobody leaves with."""
_FEW = 4
"""Fewer collectives fit somewhere by chance."""


def by_leaving(columns: Columns, streams: list[Integers]) -> list[list[Placed]]:
    """Bundle the streams of ranks whose collectives end after the same times as the first one's."""
    of_length: dict[int, list[Integers]] = {}
    for rows in streams:
        of_length.setdefault(len(rows), []).append(rows)
    bundles = [bundle for same in of_length.values() for bundle in _of_as_many(columns, same)]
    return _with_others(columns, bundles)


def _of_as_many(columns: Columns, streams: list[Integers]) -> list[list[Placed]]:
    """Bundle streams with as many collectives: they begin with the same one, if they are alike."""
    few = np.linspace(0, len(streams[0]) - 1, _LOOKED_AT).astype(np.int64)
    looks = np.stack([columns.end_ns[rows[few]] for rows in streams])
    bundles: list[list[Placed]] = []
    firsts: list[int] = []
    for number, rows in enumerate(streams):
        fits = [
            (fit(columns, bundles[place_][0].rows, rows), bundles[place_])
            for place_ in _likely(looks[firsts] - looks[number])
            if columns.rank_of(bundles[place_][-1].rows) != columns.rank_of(rows)  # the last added
        ]
        best, bundle = min(fits, key=lambda fit: fit[0].spread_ns, default=(NOWHERE, []))
        if best.spread_ns <= TOGETHER_NS:
            bundle.append(best)
        else:
            firsts.append(number)
            bundles.append([first(rows)])
    return bundles


def _likely(apart: Integers) -> list[int]:
    """Choose the bundles that are worth a closer look, by how far a few ends are apart."""
    if not len(apart):
        return []
    spread = _medians(np.abs(apart - _medians(apart)))[:, 0]
    likest = np.argsort(spread, kind="stable")[:_LIKEST]
    found: list[int] = likest[spread[likest] <= _ROUGHLY_NS].tolist()
    return found


def _medians(ends: Integers) -> Integers:
    """Give the median of each row, of an odd number; NumPy's own takes several times as long."""
    middle = ends.shape[1] // 2
    return np.partition(ends, middle, axis=1)[:, middle : middle + 1]


def _with_others(columns: Columns, bundles: list[list[Placed]]) -> list[list[Placed]]:
    """Add who is left alone to those nearest in number, of which its capture has fewer, or more."""
    length = np.array([len(bundle[0].rows) for bundle in bundles])
    alone = [place for place, bundle in enumerate(bundles) if len(bundle) == 1]
    for place_ in alone[:_MOST]:
        rows = bundles[place_][0].rows
        near = np.argsort(np.abs(length - len(rows)), kind="stable")
        tried = [
            bundles[number] for number in near.tolist() if number != place_ and bundles[number]
        ]
        fits = [(_near(columns, bundle, rows), bundle) for bundle in tried[:_TRIED]]
        best, bundle = min(fits, key=lambda fit: fit[0].spread_ns, default=(NOWHERE, []))
        if best.spread_ns <= TOGETHER_NS:
            bundle.append(best)
            bundles[place_] = []
    ranks = [sorted(bundle, key=lambda one: columns.rank_of(one.rows)) for bundle in bundles]
    return [bundle for bundle in ranks if bundle]


def _near(columns: Columns, bundle: list[Placed], rows: Integers) -> Placed:
    """Place a rank's rows beside those of others."""
    if columns.rank_of(rows) in {columns.rank_of(one.rows) for one in bundle}:
        return NOWHERE
    reference = bundle[0].rows
    few = min(len(reference), len(rows)) < _FEW
    return NOWHERE if few else place(columns, reference, rows)
