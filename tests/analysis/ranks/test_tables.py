"""Collectives in constant memory: a few bytes each, and a result of fixed size."""

import pickle
from dataclasses import replace
from random import Random

import pytest

from pyprof import answers
from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.tables import RankTables
from tests.analysis.ranks.literal import Collective, gathered

_RANKS = 8


def _run(collectives: int, kind: str, *, batches: bool) -> RankTables:
    """Train with a step a collective; of other sizes each time, or of one."""
    dice = Random(1)  # noqa: S311 - repeatable, not secret
    rows = []
    for number in range(collectives):
        size = 1 << 20 if not batches else 1000 + number
        late = [dice.randrange(3) * 100_000 for _ in range(_RANKS)]
        end = 1_000_000 * number + 400_000 + dice.randrange(300_000)
        rows += [
            Collective(rank, (1_000_000 * number + late[rank], end + rank), kind, bytes=size)
            for rank in range(_RANKS)
        ]
    return gathered(rows)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("batches", [False, True])
def test_the_outcome_does_not_grow_with_collectives(batches: bool) -> None:  # noqa: FBT001 - pytest's
    """The same with enough of them to fill each table, and with four times as many."""
    few, many = (
        len(pickle.dumps(compare_ranks(_run(count, "all_reduce", batches=batches))))
        for count in (500, 2000)
    )
    assert many < 1.1 * few
    assert len(pickle.dumps(_run(500, "all_reduce", batches=False))) < 8 * 500 * 40


def test_the_order_of_captures_decides_nothing() -> None:
    facts = _run(50, "all_gather", batches=True)
    turned = facts.collectives.take(
        [row for rank in reversed(range(_RANKS)) for row in range(50 * rank, 50 * rank + 50)]
    )
    other = replace(facts, collectives=turned)
    documents = [answers.document(compare_ranks(each)) for each in (facts, other)]
    assert documents[0] == documents[1]
