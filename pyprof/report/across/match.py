"""Which collective of one rank is which of another: by process group, and by order within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.columns import Columns, numbered
from pyprof.report.across.placing import FURTHEST, NOWHERE, Placed, fit, place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ABSENT = -1

TOGETHER_NS = 25_000
"""Ranks of one communicator leave a collective within so much of each other, mostly."""


_ROUGHLY_NS = 4 * TOGETHER_NS
"""A few collectives tell roughly."""


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of a process group, and their collectives side by side."""

    name: str
    """As the captures name it; else the stream on which the first rank runs it."""
    named: bool
    ranks: Ints
    """Rising; those whose captures hold its collectives."""
    size: int | None
    """How many ranks it has: as a capture tells, or as many as were found by its name."""
    rows: Ints
    """[rank, collective]: the row in the table of collectives; ABSENT where a capture has none."""

    @property
    def complete(self) -> bool:
        """Tell whether all of its ranks were found, as far as is known."""
        return self.size in (None, len(self.ranks))


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Collectives of a rank that no other rank has."""

    rank: int
    group: str
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class Matched:
    """All groups of two ranks and more, and what is in none."""

    groups: tuple[Group, ...]
    unmatched: tuple[Unmatched, ...]


def match(columns: Columns) -> Matched:
    """Match collectives, ordered by rank and by start within each.

    Where captures name process groups, those of one name and the same ranks belong together. Where
    they do not, a stream stands for a communicator, and streams belong together whose ranks leave
    the same kinds of collectives after the same times, which no clock's offset changes.
    """
    streams = _streams(columns)
    unmatched: list[Unmatched] = []
    named = [rows for rows in streams if columns.group[rows[0]] >= 0]
    others = [rows for rows in streams if columns.group[rows[0]] < 0]
    bundles = [_placed(columns, group, unmatched) for group in _by_name(columns, named)]
    bundles += _by_leaving(columns, others)
    groups = [_group(columns, bundle) for bundle in bundles if len(bundle) > 1]
    unmatched += [
        Unmatched(columns.rank_of(one), columns.name_of(one), len(one.rows), _why(columns, one))
        for one, *peers in bundles
        if not peers
    ]
    return Matched(tuple(sorted(groups, key=_largest_first)), (*unmatched, *_edges(groups)))


def _streams(columns: Columns) -> list[Ints]:
    """Give the rows of each rank's communicators, each in order."""
    unnamed = np.where(columns.group >= 0, -1, columns.stream)
    number = numbered(columns.rank, columns.group, columns.members, unnamed)
    order = np.argsort(number, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    return sorted(parts, key=lambda rows: (int(columns.rank[rows[0]]), int(rows[0])))


def _by_name(columns: Columns, streams: list[Ints]) -> Iterable[list[Ints]]:
    found: dict[tuple[int, int], list[Ints]] = {}
    for rows in streams:
        key = (int(columns.group[rows[0]]), int(columns.members[rows[0]]))
        found.setdefault(key, []).append(rows)
    return found.values()


def _placed(columns: Columns, streams: list[Ints], unmatched: list[Unmatched]) -> list[Placed]:
    """Put the streams of one group side by side; the first one's order counts."""
    first, *others = streams
    bundle = [Placed(first, 0, 0.0)]
    for rows in others:
        if (found := place(columns, first, rows)) is NOWHERE:
            lead = columns.rank[first[0]]
            why = f"other collectives, or in another order, than on rank {lead}"
            name = columns.name_of(Placed(rows, 0, 0.0))
            unmatched.append(Unmatched(int(columns.rank[rows[0]]), name, len(rows), why))
        else:
            bundle.append(found)
    return bundle


def _by_leaving(columns: Columns, streams: list[Ints]) -> list[list[Placed]]:
    """Bundle streams whose collectives end after the same times as the first one's."""
    bundles: list[list[Placed]] = []
    looks: list[Ints] = []
    for rows in streams:
        rank, look = columns.rank[rows[0]], _look(columns, rows)
        fits = [
            (_near(columns, bundles[number][0].rows, rows), bundles[number])
            for number in _likely(looks, look)
            if columns.rank[bundles[number][-1].rows[0]] != rank  # ranks come one after the other
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


_LOOKED_AT = 17


def _likely(looks: list[Ints], look: Ints) -> list[int]:
    """Choose the streams that are worth a closer look; of lengths a little different, all."""
    if not looks:
        return []
    apart = np.array(looks) - look
    ends = apart[:, 1:]
    spread = np.median(np.abs(ends - np.median(ends, axis=1, keepdims=True)), axis=1)
    longer = np.abs(apart[:, 0])
    likely = np.where(longer == 0, spread <= _ROUGHLY_NS, longer <= FURTHEST)
    found: list[int] = np.flatnonzero(likely).tolist()
    return found


def _near(columns: Columns, reference: Ints, rows: Ints) -> Placed:
    """Place rows beside others; of as many, most are of other groups, and all begin alike."""
    if len(reference) == len(rows):
        return fit(columns, reference, rows)
    return place(columns, reference, rows)


def _group(columns: Columns, bundle: list[Placed]) -> Group:
    low = min(one.shift for one in bundle)
    length = max(one.shift + len(one.rows) for one in bundle) - low
    rows = np.full((len(bundle), length), ABSENT)
    for place_, one in enumerate(bundle):
        rows[place_, one.shift - low : one.shift - low + len(one.rows)] = one.rows
    lead = bundle[0].rows[0]
    ranks = columns.rank[[one.rows[0] for one in bundle]]
    named = bool(columns.group[lead] >= 0)
    told = int(columns.size[lead])
    size = told if told > 0 else len(ranks) if named else None
    return Group(columns.name_of(bundle[0]), named, ranks, size, rows)


def _largest_first(group: Group) -> tuple[int, list[int], str]:
    return -len(group.ranks), group.ranks.tolist(), group.name


def _why(columns: Columns, alone: Placed) -> str:
    if columns.size[alone.rows[0]] == 1:
        return "a group of one rank"
    if columns.group[alone.rows[0]] >= 0:
        return "no other rank of the set has this process group"
    return "no other rank leaves such collectives at such times"


def _edges(groups: list[Group]) -> Iterable[Unmatched]:
    """Tell of collectives that some ranks' captures begin too late or end too early for."""
    for group in groups:
        seen = (group.rows != ABSENT).sum(axis=0)
        for rank, row in zip(group.ranks.tolist(), group.rows, strict=True):
            if alone := int(((row != ABSENT) & (seen == 1)).sum()):
                why = "before the other captures begin, or after they end"
                yield Unmatched(rank, group.name, alone, why)


def spans(ranks: list[int]) -> str:
    """Spell rising ranks: `0 to 7`, `0 8 16`, `0 and 1`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) == 2:  # noqa: PLR2004 - a pair
        return f"ranks {ranks[0]} and {ranks[1]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    shown = [str(rank) for rank in ranks[:_SHOWN]]
    return f"ranks {' '.join(shown)}{' ...' if len(ranks) > _SHOWN else ''}"


_SHOWN = 8
