"""A collective dropped in mid-capture does not shift the others."""

from collections.abc import Collection, Mapping
from itertools import accumulate
from random import Random

import pytest

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.tables import Collectives
from tests.analysis.ranks.literal import Collective, gathered

_COUNT, _RANKS = 200, 3


@pytest.mark.parametrize("kinds", [("all_reduce",), ("all_gather", "reduce_scatter", "all_reduce")])
@pytest.mark.parametrize(
    "lost",
    [
        {1: {30}}, {1: {100}}, {1: {195}}, {0: {100}}, {2: range(60, 75)},
        {0: {50}, 1: {120, 121}, 2: {50, 160}},
    ],
)  # fmt: skip
def test_a_dropped_collective_makes_nobody_wait(
    lost: Mapping[int, Collection[int]], kinds: tuple[str, ...]
) -> None:
    """Ranks come and leave together, on clocks that drift: nothing else is found."""
    dice = Random(str(lost))  # noqa: S311 - repeatable, not secret
    ends = list(accumulate(dice.randrange(200_000, 2_000_000) for _ in range(_COUNT)))
    rows, true = [], []
    for rank in range(_RANKS):
        for number, end in enumerate(ends):
            if number not in lost.get(rank, ()):
                left = round(end * (1 + rank * 2e-5)) + 10**9 * rank + dice.randrange(3000)
                kind = kinds[number % len(kinds)]
                rows.append(Collective(rank, (left - 50_000, left), kind))
                true.append(number)
    facts = gathered(rows)
    (matrix,) = match(Collectives.from_tables(facts)).matrices
    for column in matrix.rows.T.tolist():
        assert len({true[row] for row in column if row >= 0}) == 1
    found = compare_ranks(facts)
    assert sum(one.waited_ns for one in found.stragglers) < _RANKS * _COUNT * 100
    assert found.left_before_the_last_came == 0
    taken = sum(one.of for one in found.stragglers) + sum(one.count for one in found.unmatched)
    assert taken == len(rows)
