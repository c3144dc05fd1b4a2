"""Waiting and transfer, compared with brute force."""

from collections.abc import Mapping, Sequence
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.ranks.clocks import Clock
from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.stragglers import by_step, together
from pyprof.analysis.ranks.waiting import Waits, waits
from pyprof.arrays import MISSING
from tests.analysis.ranks.literal import Collective, collectives

_RANKS = 4
_EVERY_NS = 1_000_000
_NOW_NS = 1_712_195_495_520_871_001
"""A time of Kineto, since 1970: a float does not hold it to the ns."""
_NS = st.lists(st.integers(0, 900), min_size=_RANKS, max_size=_RANKS)
_TIMES = st.lists(st.tuples(_NS, _NS), min_size=2, max_size=8)
"""When ranks arrive, and how much later they leave."""


def _waits(times: Sequence[tuple[list[int], list[int]]], residual: int) -> Waits:
    columns = collectives(
        Collective(rank, (at + came[rank], at + max(came) + left[rank]), step=number // 2)
        for number, (came, left) in enumerate(times)
        for at in [_NOW_NS + number * _EVERY_NS]
        for rank in range(_RANKS)
    )
    (found,) = waits(columns, match(columns).matrices, _clocks(residual))
    return found


def _clocks(residual: int = 0) -> Mapping[int, Clock]:
    """Return four ranks: the first three have residuals, and the first two are on one clock."""
    return {
        rank: Clock(number, 0, residual_ns=residual * times)
        for rank, (number, times) in enumerate(((0, 1), (0, 2), (1, 1), (2, 0)))
    }


def _doubt(residual: int, one: int, other: int) -> int:
    """Return the least difference of two ranks that counts: the sum of their clocks' residuals."""
    if one == other or {one, other} == {0, 1}:
        return 0
    return sum((1, 2, 1, 0)[rank] for rank in (one, other)) * residual


@given(_TIMES, st.integers(0, 200))
def test_waits_and_transfers_equal_brute_force(
    times: list[tuple[list[int], list[int]]], residual: int
) -> None:
    """Nothing below the residuals of two ranks counts."""
    found = _waits(times, residual)
    for place, (came, left) in enumerate(times):
        last = came.index(max(came))
        doubt = [_doubt(residual, rank, last) for rank in range(_RANKS)]
        behind = [max(came) - at for at in came]
        expected = [ns if ns > least else 0 for ns, least in zip(behind, doubt, strict=True)]
        assert found.wait_ns[:, place].tolist() == expected
        near = [rank for rank in range(_RANKS) if behind[rank] <= doubt[rank]]
        assert found.last[place] == (last if near == [last] else MISSING)
        moved = int(median(left))
        assert found.transfer_ns[place] == (moved if moved > median(doubt) else MISSING)


@given(_TIMES)
def test_all_waiting_is_for_a_rank_or_unclear(times: list[tuple[list[int], list[int]]]) -> None:
    """Steps add up to the total."""
    found = _waits(times, 30)
    told = sum(one.cost_ns for one in by_step([found]))
    unclear_ns, unclear = together([found])
    assert told + unclear_ns == found.wait_ns.sum()
    assert unclear_ns == sum(one.cost_ns for one in unclear)
    assert all(len(one.ranks) > 1 for one in unclear)


def test_a_collective_left_before_the_last_rank_comes_is_not_a_wait() -> None:
    """A broadcast's root may go on at once."""
    columns = collectives([
        Collective(0, (0, 100)), Collective(1, (500, 600)),
        Collective(0, (1000, 1900)), Collective(1, (1700, 1900)),
    ])  # fmt: skip
    (found,) = waits(columns, match(columns).matrices, _clocks())
    assert found.possible.tolist() == [False, True]
    assert found.last.tolist() == [MISSING, 1]
    assert found.wait_ns.tolist() == [[0, 700], [0, 0]]
    assert found.transfer_ns.tolist() == [MISSING, 200]


def test_transfers_are_unknown_if_a_rank_is_missing() -> None:
    """It may have been the last; waits of the others for each other stay."""
    columns = collectives([Collective(0, (0, 900), size=3), Collective(1, (500, 900), size=3)])
    (found,) = waits(columns, match(columns).matrices, _clocks())
    assert (found.last.tolist(), found.transfer_ns.tolist()) == ([1], [MISSING])


def test_a_collective_is_in_a_step_if_any_rank_has_it_in_one() -> None:
    """The first rank's capture may lack the marks of steps."""
    columns = collectives([
        Collective(0, (0, 900)), Collective(1, (500, 900), step=3),
        Collective(0, (1000, 1900)), Collective(1, (1500, 1900)),
    ])  # fmt: skip
    (found,) = waits(columns, match(columns).matrices, _clocks())
    assert found.step.tolist() == [3, MISSING]
