"""Clocks are aligned by the ends of collectives; the residual is reported."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.ranks.clocks import Clock, clocks
from pyprof.analysis.ranks.match import match
from tests.analysis.ranks.literal import Collective, collectives

_NOW_NS = 1_712_195_495_520_871_001
_OFFSETS = st.lists(st.integers(-(10**15), 10**15), min_size=2, max_size=6)


def _clocks(
    rows: Iterable[Collective], numbers: Mapping[int, int] | None = None
) -> Mapping[int, Clock]:
    columns = collectives(rows)
    own = {rank: rank for rank in columns.rank.tolist()}
    return clocks(columns, match(columns).matrices, own if numbers is None else numbers)


def _ends(count: int) -> list[int]:
    return [
        _NOW_NS + 1_000_000 * number + 37_000 * number**2 % 600_000
        for number in range(1, count + 1)
    ]


def _of_ends(*ends: Sequence[int]) -> Mapping[int, Clock]:
    """Return the clocks of ranks that leave at these times."""
    return _clocks(
        Collective(rank, (end - 10, end)) for rank, own in enumerate(ends) for end in own
    )


@given(_OFFSETS, st.integers(1, 20))
def test_offsets_are_found_to_the_ns(offsets: list[int], count: int) -> None:
    """For ranks that leave together, relative to the first rank's clock."""
    found = _of_ends(*([end + offset for end in _ends(count)] for offset in offsets))
    assert {rank: clock.offset_ns for rank, clock in found.items()} == {
        rank: offset - offsets[0] for rank, offset in enumerate(offsets)
    }
    residual = 0 if count >= 5 else 25_000  # of a few, the offset takes all
    assert {(clock.residual_ns, clock.drift) for clock in found.values()} == {(residual, 0.0)}


def test_a_rank_is_aligned_through_others() -> None:
    rows = [
        Collective(rank, (end + offset - 10, end + offset), group=group)
        for group, members in (("a", ((0, 0), (1, 500))), ("b", ((1, 500), (2, -900))))
        for rank, offset in members
        for end in _ends(5)
    ]
    found = _clocks(rows)
    assert {rank: clock.offset_ns for rank, clock in found.items()} == {0: 0, 1: 500, 2: -900}


def test_outliers_do_not_move_offsets() -> None:
    """They are medians: two of twenty ends are 0.2 ms late."""
    ends = _ends(20)
    late = [end + 42 + (200_000 if place in (3, 11) else 0) for place, end in enumerate(ends)]
    found = _of_ends(ends, late)
    assert found[1].offset_ns == 42
    assert found[1].residual_ns > 90_000  # ... but are not hidden


def test_the_residual_is_what_ranks_leave_apart() -> None:
    """Rank 1 leaves 10 us earlier or 10 us later: a residual of 10 us each."""
    ends = _ends(30)
    shaken = [end + (-10_000, 10_000)[place % 2] for place, end in enumerate(ends)]
    found = _of_ends(ends, shaken)
    assert abs(found[1].offset_ns) <= 10_000
    assert found[0].residual_ns + found[1].residual_ns == pytest.approx(10_000, rel=0.01)


LONG = [100_000_000 * number + 31_000_000 * number**2 % 50_000_000 for number in range(1, 101)]
"""Ends within ten seconds."""


def test_drift_is_removed() -> None:
    found = _of_ends(LONG, [round(end * (1 + 40e-6)) + 777 for end in LONG])
    assert found[1].drift == pytest.approx(40e-6, rel=1e-3)
    assert found[1].residual_ns < 100


def test_a_clock_that_bends_is_not_hidden() -> None:
    """One straight line does not fit it, and the residual shows that."""
    late = [end + round(200_000 * (end / LONG[-1] - 0.5) ** 2) for end in LONG]  # 50 us at its ends
    found = _of_ends(LONG, late)
    error = sorted(np.abs(found[1].align(np.array(late)) - LONG).tolist())
    assert 10_000 < error[94] <= found[0].residual_ns + found[1].residual_ns < 50_000


def test_ranks_that_share_nothing_are_not_aligned() -> None:
    """Pairs are aligned by themselves; a rank without a partner is not."""
    found = _clocks(
        Collective(rank, (end - 10, end + 7 * rank), group="abc"[rank // 2])
        for rank in range(5) for end in _ends(5)
    )  # fmt: skip
    assert {rank: (clock.against, clock.offset_ns) for rank, clock in found.items()} == {
        0: (0, 0), 1: (0, 7), 2: (2, 0), 3: (2, 7),
    }  # fmt: skip


def test_ranks_of_one_capture_have_one_clock() -> None:
    """However far apart they leave; another host's is shifted as a whole, by all of its ranks."""
    late = (0, -22_000, 10**9, 10**9 - 22_000)
    rows = [Collective(rank, (end - 10, end + late[rank])) for rank in range(4) for end in _ends(9)]
    found = _clocks(rows[:18], {0: 5, 1: 5})
    assert {(one.offset_ns, one.residual_ns, one.number) for one in found.values()} == {(0, 0, 5)}
    found = _clocks(rows, {0: 5, 1: 5, 2: 6, 3: 6})
    assert [one.offset_ns for one in found.values()] == [0, 0, 10**9, 10**9]
    assert all(one.residual_ns == 11_000 for one in found.values())  # of each, to the middle


def test_ranks_of_one_capture_are_on_one_clock_without_collectives() -> None:
    assert sorted(_clocks([], {0: 0, 1: 0, 2: 1})) == [0, 1]


def test_what_a_rank_leaves_early_aligns_no_clock() -> None:
    """A broadcast's root does not wait for the others; all-reduces of the same ranks count."""
    rows = [
        Collective(rank, (end - 10, end + 300_000 * rank), kind="broadcast", group="1")
        for rank in range(2) for end in _ends(9)
    ]  # fmt: skip
    found = _clocks([*rows, *(
        Collective(rank, (end - 10, end + 5 * rank)) for rank in range(2) for end in _ends(3)
    )])  # fmt: skip
    assert (found[1].offset_ns, found[1].collectives, found[1].sure) == (5, 3, True)
    alone = _clocks(rows)
    assert (alone[1].offset_ns, alone[1].sure) == (300_000, False)  # wrong, and reported
