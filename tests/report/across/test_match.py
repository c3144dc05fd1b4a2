"""Collectives of ranks find each other by process group and order, else by when they are left."""

from __future__ import annotations

from pyprof.report.across.match import Group, match, spans
from tests.report.across.literal import Collective, collectives

ENDS = (1_000_000, 1_900_000, 3_500_000, 4_100_000, 6_000_000, 6_700_000)


def _rank(rank: int, *, ends: tuple[int, ...] = ENDS, **same: object) -> list[Collective]:
    return [Collective(rank, (end - 50_000, end), **same) for end in ends]  # type: ignore[arg-type]


def _shape(group: Group) -> tuple[list[int], list[list[bool]]]:
    return group.ranks.tolist(), (group.rows >= 0).tolist()


def test_groups_of_one_name_and_the_same_ranks_belong_together() -> None:
    """Names may come again on other ranks."""
    found = match(collectives([
        *_rank(0, members="[0, 1]"), *_rank(1, members="[0, 1]"),
        *_rank(2, members="[2, 3]"), *_rank(3, members="[2, 3]"),
        *_rank(0, group="1"), *_rank(2, group="1"),
    ]))  # fmt: skip
    assert [(group.name, group.ranks.tolist()) for group in found.groups] == [
        ("0", [0, 1]), ("1", [0, 2]), ("0", [2, 3]),
    ]  # fmt: skip
    assert not found.unmatched


def test_every_collective_is_in_one_place() -> None:
    """Rows point at the table; the n-th of one rank stands beside the n-th of another."""
    columns = collectives([*_rank(0), *_rank(1)])
    (group,) = match(columns).groups
    assert group.rows.tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert group.complete


def test_a_capture_that_begins_later_is_moved_along() -> None:
    """Told by the times between ends, whatever its clock shows."""
    late = tuple(end + 10**15 for end in ENDS[2:])
    found = match(collectives([*_rank(0), *_rank(1, ends=late)]))
    (group,) = found.groups
    assert _shape(group) == ([0, 1], [[True] * 6, [False] * 2 + [True] * 4])
    (alone,) = found.unmatched
    assert (alone.rank, alone.count) == (0, 2)


def test_a_capture_that_begins_earlier_is_moved_along() -> None:
    """The first rank's order counts, but not where it begins."""
    found = match(collectives([*_rank(0, ends=ENDS[1:]), *_rank(1)]))
    (group,) = found.groups
    assert _shape(group) == ([0, 1], [[False] + [True] * 5, [True] * 6])


def test_another_order_is_no_match() -> None:
    """It is said which rank, and why."""
    found = match(collectives([*_rank(0), *_rank(1), *_rank(2, kind="all_gather")]))
    (group,) = found.groups
    assert group.ranks.tolist() == [0, 1]
    (alone,) = found.unmatched
    assert (alone.rank, alone.count) == (2, 6)
    assert "than on rank 0" in alone.why


def test_streams_stand_for_groups_that_have_no_name() -> None:
    """Ranks of one communicator leave after the same times; here 0 with 3 and 1 with 2."""
    other = tuple(end + step * 170_000 for step, end in enumerate(ENDS))
    clocks = (0, 10**12, -(10**9), 77)
    found = match(
        collectives(
            one
            for rank, ends in enumerate((ENDS, other, other, ENDS))
            for one in _rank(
                rank, group=None, stream=7 + rank, ends=tuple(e + clocks[rank] for e in ends)
            )
        )
    )
    assert [group.ranks.tolist() for group in found.groups] == [[0, 3], [1, 2]]
    assert all(group.size is None for group in found.groups)


def test_two_streams_of_a_rank_are_two_groups() -> None:
    """A communicator has one stream a rank."""
    rows = [*_rank(0, group=None), *_rank(0, group=None, stream=21)]
    found = match(collectives([*rows, *_rank(1, group=None)]))
    assert [group.ranks.tolist() for group in found.groups] == [[0, 1]]
    assert [(one.rank, one.count) for one in found.unmatched] == [(0, 6)]


def test_a_group_that_is_not_whole_is_known_as_such() -> None:
    """A rank's capture is missing."""
    (group,) = match(collectives([*_rank(0, size=3), *_rank(1, size=3)])).groups
    assert (group.size, group.complete) == (3, False)


def test_a_group_of_one_rank_waits_for_nobody() -> None:
    """And is told from one whose other captures are missing."""
    found = match(collectives([*_rank(0, size=1), *_rank(0, size=2, group="1")]))
    assert not found.groups
    assert [one.why for one in found.unmatched] == [
        "a group of one rank", "no other rank of the set has this process group",
    ]  # fmt: skip


def test_no_collectives_no_groups() -> None:
    """A set of ranks that never speak."""
    assert match(collectives([])).groups == ()


def test_ranks_are_spelled_short() -> None:
    """For sentences."""
    sets = ([3], [0, 4], [2, 3, 4], [0, 8, 16], list(range(0, 40, 2)))
    assert [spans(ranks) for ranks in sets] == [
        "rank 3", "ranks 0 and 4", "ranks 2 to 4", "ranks 0 8 16", "ranks 0 2 4 6 8 10 12 14 ...",
    ]  # fmt: skip
