"""Which collectives of two ranks are the same: by process group, and by order within it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.dropped_events import realign
from pyprof.analysis.ranks.stream_alignment import (
    UNALIGNED,
    Alignment,
    first,
    group_by_end_times,
    place,
)
from pyprof.answers.ranks_answer import UnmatchedCount
from pyprof.arrays import MISSING
from pyprof.ops.torch.collectives import SEND_RECV
from pyprof.quantities import spans
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.analysis.ranks.tables import Collectives, Signatures
    from pyprof.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of a process group."""

    name: str
    """As the captures name it; else the stream on which the first rank runs it."""
    named: bool
    ranks: IntArray
    """Rising; those whose captures hold its collectives."""
    size: int | None
    """How many ranks it has: as recorded, or as many as were found by its name."""

    @property
    def complete(self) -> bool:
        """Whether all of its ranks were found, as far as is known."""
        return self.size in (None, len(self.ranks))

    @property
    def members(self) -> str:
        """The ranks, separated by blanks."""
        return " ".join(map(str, self.ranks.tolist()))


@dataclass(frozen=True, slots=True)
class CollectiveMatrix:
    """The collectives of a group side by side."""

    group: Group
    rows: IntArray
    """[rank, collective]: the entry in the columns; MISSING if a capture has none."""


@dataclass(frozen=True, slots=True)
class Matched:
    """All groups of two ranks and more, and the collectives that are in none."""

    matrices: tuple[CollectiveMatrix, ...]
    unmatched: tuple[UnmatchedCount, ...]
    absent: tuple[int, ...] = ()
    """Ranks without a capture that must exist, judging by the other ranks' groups or numbers."""
    waiting_for_absent: tuple[int, ...] = ()
    """Ranks that may wait for one of these while others do not: who is late is unknown."""
    all_may_wait: bool = False
    """Whether all captured ranks may wait for one of these."""


def match(columns: Collectives) -> Matched:
    """Match collectives, ordered by rank and by start within each.

    Where captures name process groups, those of one name and the same ranks belong together, in
    their order. Where they do not, a stream stands for a communicator, and streams belong together
    if their ranks leave the same kinds of collectives after the same times, which no clock offset
    changes. The same goes for sends and receives in a larger group, since each joins only two
    ranks.
    """
    unnamed, named = _streams(columns)
    placed: list[tuple[list[Alignment], list[IntArray]]] = []  # bundles, and streams of the name
    placed += [(bundle, []) for bundle in group_by_end_times(columns, unnamed)]
    for group in named:
        ordered = _all_take_part(columns.signatures, columns.of_row(group[0][0]), len(group))
        align = _align_streams if ordered else group_by_end_times
        placed += [(bundle, group) for bundle in align(columns, group)]
    matrices = [_collective_matrix(columns, bundle) for bundle, _ in placed if len(bundle) > 1]
    alone = [(bundle[0].rows, group) for bundle, group in placed if len(bundle) == 1]
    counts = [(rows, len(rows), _why(columns, rows, group)) for rows, group in alone]
    counts += [
        (one.rows, one.left_out, "missing in the middle of another rank's capture")
        for bundle, _ in placed
        for one in bundle
        if one.left_out
    ]
    unmatched = [
        UnmatchedCount(columns.rank_of(rows), columns.name_of(rows), count, why)
        for rows, count, why in counts
    ]
    unmatched += _edges(matrices)
    matrices.sort(key=lambda one: (-len(one.group.ranks), one.group.ranks.tolist(), one.group.name))
    waiting, all_may_wait = _find_waiting(columns, matrices, [rows for rows, _ in alone])
    absent = _find_absent(columns)
    return Matched(tuple(matrices), tuple(unmatched), absent, waiting, all_may_wait)


def _find_absent(columns: Collectives) -> tuple[int, ...]:
    """Return the ranks that have no capture, by the members of groups, their sizes, and gaps."""
    what = columns.signatures
    present = {*what.rank.tolist()}
    if len(present) < _PAIR:
        return ()
    count = max(max(present) + 1, int(what.size.max(initial=0)))
    named = {int(rank) for text in what.members.values for rank in _NUMBER.findall(text)}
    return tuple(sorted(({*range(min(count, _MAX_RANKS))} | named) - present))


def _find_waiting(
    columns: Collectives, matrices: list[CollectiveMatrix], alone: list[IntArray]
) -> tuple[tuple[int, ...], bool]:
    """Return the ranks of groups that have members without a capture, and whether all may wait.

    A group that includes all captured ranks is left out: there, all of them wait alike. All may
    wait if each is in a group of more, or of unknown size.
    """
    what = columns.signatures
    captured = {*what.rank.tolist()}
    waiting: set[int] = set()
    for rows in alone:
        one = columns.of_row(rows[0])
        open_group = what.members.at(one) is None or _absent_members(columns, one)
        if open_group and _size(what, one) > 1:
            waiting.add(columns.rank_of(rows))
    of_open: set[int] = set()
    for matrix in matrices:
        ranks = matrix.group.ranks.tolist()
        if not matrix.group.complete and len(ranks) < len(captured):
            waiting.update(ranks)
        if _size(what, columns.of_row(int(matrix.rows.max()))) != len(ranks):
            of_open.update(ranks)
    return tuple(sorted(waiting)), waiting | of_open >= captured


def _absent_members(columns: Collectives, one: int) -> list[int]:
    """Return the ranks of a group that have no capture, if a capture lists its ranks."""
    what = columns.signatures
    members = {int(rank) for rank in _NUMBER.findall(what.members.at(one) or "")}
    return sorted(members - {*what.rank.tolist()})


def _streams(columns: Collectives) -> tuple[list[IntArray], list[list[IntArray]]]:
    """The rows of each rank's communicators, in order: unnamed ones, and those of each name."""
    what = columns.signatures
    unnamed = what.group.index < 0
    # number communicators: the same on all ranks if named, else one per rank and stream
    one_rank = np.where(unnamed, what.rank, MISSING)
    stream = np.where(unnamed, what.stream, MISSING)
    exchange = np.where(unnamed, MISSING, what.kind.is_in(SEND_RECV))
    lane = number_combinations(what.group.index, what.members.index, exchange, one_rank, stream)
    number = number_combinations(what.rank, lane)[columns.signature]
    order = np.argsort(number, kind="stable").astype(np.int32)
    parts = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if len(order) else []
    alone: list[IntArray] = []
    named: dict[int, list[IntArray]] = {}
    for rows in sorted(parts, key=lambda rows: int(rows[0])):  # rows are in the order of ranks
        one = columns.of_row(rows[0])
        if unnamed[one]:
            alone.append(rows)
        else:
            named.setdefault(int(lane[one]), []).append(rows)
    return alone, [*named.values()]


def _all_take_part(what: Signatures, one: int, ranks: int) -> bool:
    """Whether each of a group's ranks is in each of its collectives."""
    return not what.kind.is_in(SEND_RECV)[one] or max(ranks, _size(what, one)) == _PAIR


def _size(what: Signatures, one: int) -> int:
    """The number of ranks in a collective, as far as known.

    For sends and receives, some captures list the two ranks that take part, not the whole group.
    """
    if what.kind.is_in(SEND_RECV)[one] and (members := what.members.at(one)) is not None:
        return len(_NUMBER.findall(members))
    return int(what.size[one])


_PAIR = 2
_NUMBER = re.compile(r"[0-9]{1,9}")
_MAX_RANKS = 1 << 20


def _align_streams(columns: Collectives, streams: list[IntArray]) -> Iterable[list[Alignment]]:
    """Align the streams of one group; those that fit no other begin a bundle of their own."""
    bundles: list[list[Alignment]] = []
    for rows in sorted(streams, key=len, reverse=True):  # a complete stream is the reference
        for bundle in bundles[:_VARIANTS]:
            reference = bundle[0].rows
            placed = realign(columns, reference, rows, place(columns, reference, rows))
            if placed is not UNALIGNED:
                bundle.append(placed)
                break
        else:
            bundles.append([first(rows)])
    return [sorted(bundle, key=lambda one: columns.rank_of(one.rows)) for bundle in bundles]


_VARIANTS = 8
"""Maximum number of bundles tried; ranks of a group normally do the same in the same order."""


def _collective_matrix(columns: Collectives, bundle: list[Alignment]) -> CollectiveMatrix:
    low = min(int(one.at[0]) for one in bundle)
    length = max(int(one.at[-1]) for one in bundle) + 1 - low
    rows = np.full((len(bundle), length), MISSING, np.int32)
    for place_, one in enumerate(bundle):
        rows[place_, one.at - low] = one.rows
    lead_rows, what = bundle[0].rows, columns.signatures
    ranks = np.array([columns.rank_of(one.rows) for one in bundle])
    lead = columns.of_row(lead_rows[0])
    named, group_size = what.group.at(lead) is not None, _size(what, lead)
    size = group_size if group_size > 0 else len(ranks) if named else None
    return CollectiveMatrix(Group(columns.name_of(lead_rows), named, ranks, size), rows)


def _why(columns: Collectives, alone: IntArray, group: list[IntArray]) -> str:
    what, one = columns.signatures, columns.of_row(alone[0])
    if what.size[one] == 1:
        return "a group of one rank"
    if len(group) == 1:
        if absent := _absent_members(columns, one):
            return f"no capture of {spans(absent)}"
        return "no other rank in the set has this process group"
    if not group or not _all_take_part(what, one, len(group)):
        return "no other rank leaves such collectives at such times"
    lead = next(columns.rank_of(rows) for rows in group if rows is not alone)
    return f"different collectives, or a different order, than on rank {lead}"


def _edges(matrices: list[CollectiveMatrix]) -> Iterable[UnmatchedCount]:
    """Report collectives of one rank alone: the others' captures begin later or end earlier."""
    for matrix in matrices:
        seen = (matrix.rows != MISSING).sum(axis=0)
        for rank, row in zip(matrix.group.ranks.tolist(), matrix.rows, strict=True):
            if alone := int(((row != MISSING) & (seen == 1)).sum()):
                why = "before the other captures begin, or after they end"
                yield UnmatchedCount(rank, matrix.group.name, alone, why)
