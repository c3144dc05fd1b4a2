"""Collectives of ranks are matched by process group and order, else by their end times."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.ranks.match import Group, match
from tests.analysis.ranks.literal import Collective, collectives

ENDS = (1_000_000, 1_900_000, 3_500_000, 4_100_000, 6_000_000, 6_700_000)


def _rank(rank: int, *, ends: Sequence[int] = ENDS, **same: object) -> list[Collective]:
    return [Collective(rank, (end - 50_000, end), **same) for end in ends]  # type: ignore[arg-type]


def _groups(rows: Iterable[Collective]) -> list[Group]:
    return [matrix.group for matrix in match(collectives(rows)).matrices]


def test_groups_of_one_name_and_the_same_ranks_belong_together() -> None:
    found = match(collectives([
        *_rank(0, members="[0, 1]"), *_rank(1, members="[0, 1]"),
        *_rank(2, members="[2, 3]"), *_rank(3, members="[2, 3]"),
        *_rank(0, group="1"), *_rank(2, group="1"),
    ]))  # fmt: skip
    assert [(one.group.name, one.group.ranks.tolist()) for one in found.matrices] == [
        ("0", [0, 1]), ("1", [0, 2]), ("0", [2, 3]),
    ]  # fmt: skip
    assert not found.unmatched


def test_every_collective_is_matched_once() -> None:
    columns = collectives([*_rank(0), *_rank(1)])
    (matrix,) = match(columns).matrices
    assert matrix.rows.tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert matrix.group.complete


@pytest.mark.parametrize(
    ("first", "second", "shape"),
    [
        (ENDS, [end + 10**15 for end in ENDS[2:]], [[True] * 6, [False] * 2 + [True] * 4]),
        (ENDS[1:], ENDS, [[False] + [True] * 5, [True] * 6]),
    ],
    ids=["later", "earlier"],
)
def test_a_capture_that_begins_at_another_time_is_shifted(
    first: Sequence[int], second: Sequence[int], shape: list[list[bool]]
) -> None:
    """By the times between ends, whatever its clock and whichever rank is the first."""
    found = match(collectives([*_rank(0, ends=first), *_rank(1, ends=second)]))
    (matrix,) = found.matrices
    assert (matrix.group.ranks.tolist(), (matrix.rows >= 0).tolist()) == ([0, 1], shape)
    alone = [(one.rank, one.count) for one in found.unmatched]
    assert alone == [(rank, row.count(False)) for rank, row in ((0, shape[1]), (1, shape[0]))
                     if False in row]  # fmt: skip


@pytest.mark.parametrize(("other", "lead"), [(2, 0), (0, 1)])
def test_another_order_is_not_a_match(other: int, lead: int) -> None:
    """Even of the first rank."""
    kinds = ["all_gather" if rank == other else "all_reduce" for rank in range(3)]
    found = match(collectives([one for rank in range(3) for one in _rank(rank, kind=kinds[rank])]))
    (matrix,) = found.matrices
    assert matrix.group.ranks.tolist() == [rank for rank in range(3) if rank != other]
    (alone,) = found.unmatched
    assert (alone.rank, alone.count) == (other, 6)
    assert f"than on rank {lead}" in alone.why


def test_streams_stand_for_groups_that_have_no_name() -> None:
    """Ranks of one communicator leave at the same intervals; here 0 with 3 and 1 with 2."""
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
    assert [one.group.ranks.tolist() for one in found.matrices] == [[0, 3], [1, 2]]
    assert all(one.group.size is None for one in found.matrices)


def test_two_streams_of_a_rank_are_two_groups() -> None:
    rows = [*_rank(0, group=None), *_rank(0, group=None, stream=21)]
    found = match(collectives([*rows, *_rank(1, group=None)]))
    assert [one.group.ranks.tolist() for one in found.matrices] == [[0, 1]]
    assert [(one.rank, one.count) for one in found.unmatched] == [(0, 6)]


def test_a_group_of_which_a_capture_is_missing_is_incomplete() -> None:
    (group,) = _groups([*_rank(0, size=3), *_rank(1, size=3)])
    assert (group.size, group.complete) == (3, False)
    assert _groups([]) == []


def test_ranks_may_all_wait_in_groups_of_which_each_is_captured_alone() -> None:
    """Those of a group that has all its captures wait for each other."""
    apart = match(collectives([*_rank(0, size=2, group="1"), *_rank(1, size=2, group="2")]))
    assert (apart.waiting_for_absent, apart.all_may_wait) == ((0, 1), True)
    together = match(collectives([*_rank(0, size=2), *_rank(1, size=2)]))
    assert (together.waiting_for_absent, together.all_may_wait) == ((), False)


def test_a_group_of_one_rank_waits_for_nobody() -> None:
    """Unlike one whose other captures are missing."""
    found = match(collectives([*_rank(0, size=1), *_rank(0, size=2, group="1")]))
    assert not found.matrices
    assert [one.why for one in found.unmatched] == [
        "a group of one rank", "no other rank in the set has this process group",
    ]  # fmt: skip


@given(
    st.integers(0, 2**32),
    st.integers(20, 400),
    st.lists(st.tuples(st.floats(0, 0.25), st.floats(0, 0.25)), min_size=3, max_size=3),
    st.sampled_from(["0", None]),
)
def test_matched_rows_are_one_collective(
    seed: int, count: int, cut: list[tuple[float, float]], group: str | None
) -> None:
    """Captures begin late and end early, on any clocks: one that crashed, one that came later."""
    dice = Random(seed)  # noqa: S311 - repeatable, not secret
    ends = list(accumulate(dice.randrange(50_000, 2_000_000) for _ in range(count)))
    rows: list[Collective] = []
    true: list[int] = []
    for rank, (late, early) in enumerate(cut):
        kept = range(round(late * count), count - round(early * count))
        offset = dice.randrange(10**15)
        true += kept
        rows += [
            Collective(rank, (end, end + 9), group=group)
            for end in (ends[number] + offset + dice.randrange(3000) for number in kept)
        ]
    for matrix in match(collectives(rows)).matrices:
        for column in matrix.rows.T.tolist():
            assert len({true[row] for row in column if row >= 0}) == 1
    if group:
        (matrix,) = match(collectives(rows)).matrices
        assert matrix.group.ranks.tolist() == [0, 1, 2]


def test_sizes_may_differ_among_ranks() -> None:
    rows = [
        Collective(rank, (end - 9, end), kind, group=kind, bytes=1000 * rank + number)
        for kind in ("all_to_all", "all_reduce")
        for rank in range(2)
        for number, end in enumerate(ENDS)
    ]
    found = match(collectives(rows))
    assert [matrix.group.name for matrix in found.matrices] == ["all_to_all"]
    assert {one.group for one in found.unmatched} == {"all_reduce"}


def _exchanges(ends: Sequence[int], rank: int, **same: object) -> list[Collective]:
    return _rank(rank, ends=ends, kind="send_recv", **same)


def test_sends_among_several_are_not_collectives_of_all() -> None:
    """In a pipeline the first stage sends to the second, and that to the third."""
    back = [end + 777_777 * place for place, end in enumerate(ENDS)]
    sent = [
        *_exchanges(ENDS, 0, size=3),
        *_exchanges(sorted([*ENDS, *back]), 1, size=3),
        *_exchanges(back, 2, size=3),
    ]
    found = match(collectives([*sent, *(one for rank in range(3) for one in _rank(rank, size=3))]))
    (matrix,) = found.matrices
    assert matrix.group.ranks.tolist() == [0, 1, 2]
    assert matrix.rows.shape == (3, len(ENDS))
    assert [one.why for one in found.unmatched] == [
        "no other rank leaves such collectives at such times"
    ] * 3


@pytest.mark.parametrize("told", [{"size": 2}, {"size": 4, "members": "[0, 1]"}, {}])
def test_sends_between_two_are_matched_by_order(told: dict[str, object]) -> None:
    """Though a sender leaves once its data is in the receiver's buffer."""
    late = [end + place**2 * 40_000 for place, end in enumerate(ENDS)]
    (group,) = _groups([*_exchanges(ENDS, 0, **told), *_exchanges(late, 1, **told)])
    assert (group.ranks.tolist(), group.complete) == ([0, 1], True)
