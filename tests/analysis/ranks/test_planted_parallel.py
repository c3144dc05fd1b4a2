"""Tensor, data and pipeline parallel ranks with known times, on unknown clocks.

Eight ranks are in three groups of two each, all with the same names, and in one of all. One comes
four hundred collectives later, one crashes, and clocks go wrong by up to 30 us a second.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.answers.ranks_answer import Ranks
from tests.analysis.ranks.literal import Collective, gathered
from tests.ops.torch.test_collectives import FACTORS

_RANKS = range(8)
_LATE, _CRASHED = 5, 2
_LEAVE_NS = 2_000
_KINDS = {"tensor": "all_reduce", "data": "reduce_scatter", "pipeline": "send_recv",
          "world": "all_to_all"}  # fmt: skip
_TRANSFERS_NS = {"tensor": 40_000, "data": 90_000, "pipeline": 60_000, "world": 150_000}


def _members(name: str, rank: int) -> tuple[int, ...]:
    if name == "world":
        return tuple(_RANKS)
    bit = {"tensor": 1, "data": 2, "pipeline": 4}[name]
    return tuple(sorted((rank, rank ^ bit)))


@dataclass(frozen=True)
class Run:
    found: Ranks
    waited_ns: Mapping[int, int]
    of: Mapping[int, int]


@pytest.fixture(scope="module", params=[1, 2])
def run(request: pytest.FixtureRequest) -> Run:
    """Simulate the ranks for a second or two, in lockstep with their peers."""
    dice = Random(request.param)  # noqa: S311 - repeatable, not secret
    now = dict.fromkeys(_RANKS, 0)
    clocks = {rank: (dice.randrange(10**15), dice.uniform(-3e-5, 3e-5)) for rank in _RANKS}
    seen: dict[int, int] = defaultdict(int)
    rows: list[Collective] = []
    waited: dict[int, int] = defaultdict(int)
    of: dict[int, int] = defaultdict(int)
    for number in range(3000):
        name = dice.choice(["tensor", "tensor", "data", "pipeline", "world"])
        members = _members(name, dice.randrange(8))
        start = {rank: now[rank] + dice.randrange(20_000, 400_000) for rank in members}
        last = max(start.values())
        there = []
        for rank in members:
            now[rank] = last + _TRANSFERS_NS[name] + dice.randrange(_LEAVE_NS)
            seen[rank] += 1
            if (rank == _LATE and seen[rank] <= 400) or (rank == _CRASHED and number > 1900):
                continue
            there.append(rank)
            offset, drift = clocks[rank]
            came, left = (round(t * (1 + drift)) + offset for t in (start[rank], now[rank]))
            size = 1000 * (1 + rank) if name == "world" else 1 << 16
            rows.append(
                Collective(rank, (came, left), _KINDS[name], name, str(members),
                           size=len(members), bytes=size)
            )  # fmt: skip
        if len(there) > 1:
            latest = max(start[rank] for rank in there)
            for rank in there:
                of[rank] += 1
                waited[rank] += latest - start[rank]
    return Run(compare_ranks(gathered(rows)), waited, of)


def test_groups_of_one_size_are_kept_apart(run: Run) -> None:
    told = [(speed.group, speed.members) for speed in run.found.groups]
    assert sorted(told) == sorted(
        {(name, " ".join(map(str, _members(name, rank)))) for name in _KINDS for rank in _RANKS}
    )


def test_waiting_is_that_of_true_times(run: Run) -> None:
    assert {one.rank: one.of for one in run.found.stragglers} == dict(run.of)
    for one in run.found.stragglers:
        assert one.waited_ns == pytest.approx(run.waited_ns[one.rank], abs=run.of[one.rank] * 1000)
    assert run.found.left_before_the_last_came == 0


def test_drifts_are_removed(run: Run) -> None:
    """Of up to 60 us a second; what is left is when ranks leave."""
    assert all((one.clock_residual_ns or 0) <= _LEAVE_NS for one in run.found.ranks)
    assert sum(one.clock_drift not in (None, 0) for one in run.found.ranks) >= len(_RANKS) - 2


def test_transfers_and_bandwidths_are_those_of_the_bytes_sent(run: Run) -> None:
    """For an all-to-all with other sizes on each rank, the mean."""
    for speed in run.found.groups:
        name, ranks = speed.group, speed.captured_ranks
        transfer = _TRANSFERS_NS[name]
        assert speed.transfer_ns == pytest.approx(transfer, abs=2 * _LEAVE_NS)
        mixed = name == "world"
        size = 4500 if mixed else 1 << 16
        assert (speed.kind, speed.mixed) == (_KINDS[name], mixed)
        factor = FACTORS[_KINDS[name]](ranks)
        assert speed.bus_bytes_per_s == pytest.approx(factor * size / transfer * 1e9, rel=0.06)
        assert speed.bus_bytes_per_s == pytest.approx((speed.algorithm_bytes_per_s or 0) * factor)


@pytest.mark.slow
def test_a_rank_that_crashed_or_came_later_is_named(run: Run) -> None:
    """Nothing of it is lost; what its partner did alone is unmatched."""
    alone = {one.rank for one in run.found.unmatched}
    assert {_CRASHED ^ 1, _LATE ^ 1} <= alone
    assert all("before the other captures begin" in one.why for one in run.found.unmatched)
