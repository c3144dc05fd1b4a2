"""Which streams of ranks are one communicator, and by how many collectives ranks are shifted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.arrays import IntArray


TOGETHER_NS = 25_000
"""Ranks of one communicator mostly leave a collective within this time of each other."""
_ROUGHLY_NS = 4 * TOGETHER_NS
"""The same for a few of their collectives, which show it only roughly."""
_LOOKED_AT, _LIKEST = 17, 4
"""Number of ends by which the likeliest bundles are chosen; number of bundles checked closely."""
_TRIED, _MAX = 16, 256
"""How many bundles of similar length a stream left alone is compared with; how many streams."""
_MIN_COLLECTIVES = 4
"""Fewer collectives fit somewhere by chance."""


def group_by_end_times(columns: Collectives, streams: list[IntArray]) -> list[list[Alignment]]:
    """Group streams of different ranks whose collectives end at the same intervals."""
    of_length: dict[int, list[IntArray]] = {}
    for rows in streams:
        of_length.setdefault(len(rows), []).append(rows)
    bundles = [
        bundle for same in of_length.values() for bundle in _bundle_equal_lengths(columns, same)
    ]
    # Merge a stream left alone into a bundle of similar length: its capture may have fewer
    # collectives, or more.
    length = np.array([len(bundle[0].rows) for bundle in bundles])
    alone = [place for place, bundle in enumerate(bundles) if len(bundle) == 1]
    for place_ in alone[:_MAX]:
        rows = bundles[place_][0].rows
        near = np.argsort(np.abs(length - len(rows)), kind="stable")
        tried = [
            bundles[number] for number in near.tolist() if number != place_ and bundles[number]
        ]
        fits = [(_align(columns, bundle, rows), bundle) for bundle in tried[:_TRIED]]
        best, bundle = min(fits, key=lambda fit: fit[0].spread_ns, default=(UNALIGNED, []))
        if best.spread_ns <= TOGETHER_NS:
            bundle.append(best)
            bundles[place_] = []
    ranks = [sorted(bundle, key=lambda one: columns.rank_of(one.rows)) for bundle in bundles]
    return [bundle for bundle in ranks if bundle]


def _bundle_equal_lengths(columns: Collectives, streams: list[IntArray]) -> list[list[Alignment]]:
    """Bundle streams of equal length: those that fit begin with the same collective."""
    few = np.linspace(0, len(streams[0]) - 1, _LOOKED_AT).astype(np.int64)
    looks = np.stack([columns.end_ns[rows[few]] for rows in streams])
    bundles: list[list[Alignment]] = []
    firsts: list[int] = []
    for number, rows in enumerate(streams):
        fits = [
            (fit(columns, bundles[place_][0].rows, rows), bundles[place_])
            for place_ in _choose_likely(looks[firsts] - looks[number])
            if columns.rank_of(bundles[place_][-1].rows) != columns.rank_of(rows)  # the last added
        ]
        best, bundle = min(fits, key=lambda fit: fit[0].spread_ns, default=(UNALIGNED, []))
        if best.spread_ns <= TOGETHER_NS:
            bundle.append(best)
        else:
            firsts.append(number)
            bundles.append([first(rows)])
    return bundles


def _choose_likely(apart: IntArray) -> list[int]:
    """Choose the bundles that are worth a closer look, by how far a few ends are apart."""
    if not len(apart):
        return []
    middle = np.median(apart, axis=1, keepdims=True)
    spread = np.median(np.abs(apart - middle), axis=1)
    likest = np.argsort(spread, kind="stable")[:_LIKEST]
    candidates: list[int] = likest[spread[likest] <= _ROUGHLY_NS].tolist()
    return candidates


def _align(columns: Collectives, bundle: list[Alignment], rows: IntArray) -> Alignment:
    """Align rows with a bundle; UNALIGNED if their rank is in it, or collectives are too few."""
    if columns.rank_of(rows) in {columns.rank_of(one.rows) for one in bundle}:
        return UNALIGNED
    reference = bundle[0].rows
    few = min(len(reference), len(rows)) < _MIN_COLLECTIVES
    return UNALIGNED if few else place(columns, reference, rows)


_COMPARED = 512
"""Maximum number of collectives compared; more would not change the result."""
_MIN_MATCHING = 64
"""Number of consecutive collectives that identify a position; if there are few, half of them."""
_FAR_NS = 1e6
"""Differences count up to this; a time that differs by more is wrong anyway."""
_CERTAIN_NS = 5_000
"""Ranks do not leave closer together than this by chance."""
_SURER = 0.5
"""A shifted alignment must have less than this share of the unshifted one's spread."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Rows of a rank aligned with those of the first rank."""

    rows: IntArray
    at: IntArray
    """The number of the first rank's row that each is aligned with; rising, may be below 0."""
    spread_ns: float
    """The median distance between the two ranks' ends, without the common offset."""
    left_out: int = 0
    """Number of rows that the first rank's capture lacks in its middle."""


UNALIGNED: Final = Alignment(np.zeros(0, np.int64), np.zeros(0, np.int64), np.inf)


def first(rows: IntArray) -> Alignment:
    """Make these rows the reference for others."""
    return Alignment(rows, np.arange(len(rows)), 0.0)


def place(columns: Collectives, reference: IntArray, rows: IntArray) -> Alignment:
    """Find the shift at which kinds are equal and end times agree; UNALIGNED if none fits.

    A clock's offset moves all ends alike, so it does not matter.
    """
    even = fit(columns, reference, rows, 0)
    if len(reference) == len(rows) and even.spread_ns <= _CERTAIN_NS:
        return even
    shifts = sorted(set(candidate_shifts(columns, reference, rows)), key=abs)
    others = [fit(columns, reference, rows, shift) for shift in shifts if shift]
    best = min(others, key=lambda one: one.spread_ns, default=UNALIGNED)
    return best if best.spread_ns < _SURER * even.spread_ns else even


def fit(columns: Collectives, reference: IntArray, rows: IntArray, shift: int = 0) -> Alignment:
    """Align rows at one shift; UNALIGNED if kinds differ, or too few lie side by side."""
    low, high = max(shift, 0), min(len(reference), shift + len(rows))
    if high - low < min_overlap(reference, rows):
        return UNALIGNED
    one, other = reference[low:high], rows[low - shift : high - shift]
    same = columns.same
    if (same[columns.signature[one]] != same[columns.signature[other]]).any():
        return UNALIGNED
    apart = columns.end_ns[other[:_COMPARED]] - columns.end_ns[one[:_COMPARED]]
    at = np.arange(shift, shift + len(rows))
    return Alignment(rows, at, float(np.median(np.abs(apart - np.median(apart)))))


def min_overlap(reference: IntArray, rows: IntArray) -> int:
    """Return the minimum overlap with which two sequences may be aligned."""
    return min((min(len(reference), len(rows)) + 1) // 2, _MIN_MATCHING)


def candidate_shifts(columns: Collectives, reference: IntArray, rows: IntArray) -> Iterable[int]:
    """Yield the shifts that are worth a closer look; all of them for few collectives.

    With many, only the shifts at which the first, the middle or the last few of one rank match the
    other's times best: if the captures share enough of them, one of these shifts is right.
    """
    if max(len(reference), len(rows)) <= _MIN_MATCHING:
        return range(1 - len(rows), len(reference))
    length = min_overlap(reference, rows)
    return [
        sign * (_most_similar(columns, one, other[first : first + length]) - first)
        for one, other, sign in ((reference, rows, 1), (rows, reference, -1))
        for first in (0, (len(other) - length) // 2, len(other) - length)
    ]


def _most_similar(columns: Collectives, rows: IntArray, few: IntArray) -> int:
    """Where a few collectives of one rank fit best among those of another."""
    shift_count = len(rows) - len(few) + 1
    after, wanted = np.diff(columns.end_ns[rows]), np.diff(columns.end_ns[few]).tolist()
    same = columns.same[columns.signature[rows]]
    apart = np.zeros(shift_count)
    for number, alike in enumerate(columns.same[columns.signature[few]].tolist()):
        apart[same[number : number + shift_count] != alike] += _FAR_NS
        if number < len(wanted):
            here = np.abs(after[number : number + shift_count] - wanted[number])
            apart += np.minimum(here, _FAR_NS)
    return int(apart.argmin())
