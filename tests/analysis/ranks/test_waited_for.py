"""What the answer says of the ranks that others wait for, whatever the words."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.analysis.ranks.waited_for import judge_waits
from pyprof.answers.ranks_answer import Bubble, Ranks, Stall
from tests.analysis.ranks.literal import Collective, gathered

MS = 1_000_000


def _found(late_ms: dict[tuple[int, int], int], own_ms: Sequence[float | None]) -> Ranks:
    """Compare ranks of four steps of 40 ms, with one all-reduce each, to which some come late."""
    rows = [
        Collective(rank, ((40 * step + late_ms.get((step, rank), 0)) * MS, (40 * step + 20) * MS),
                   step=step)
        for rank in range(len(own_ms)) for step in range(4)
    ]  # fmt: skip
    known = gathered(rows)
    ranks = tuple(
        replace(
            one,
            own_ns=own if own is None else own * MS,
            own_low_ns=own if own is None else own * MS,
            gpus=(replace(one.gpus[0], step_ns=40.0 * MS, steps=4, span_ns=160 * MS),),
        )
        for one, own in zip(known.ranks, own_ms, strict=True)
    )
    return compare_ranks(replace(known, ranks=ranks))


@pytest.mark.parametrize(
    ("late_ms", "expected"),
    [
        ({(1, 2): 15, (2, 0): 16}, (Stall(1, 2, 15.0 * MS), Stall(2, 0, 16.0 * MS))),
        ({(0, 2): 15}, ()),  # its recording began late
        ({(1, 2): 9}, ()),  # less than a quarter of a step
        ({(1, 2): 15, (1, 0): 5}, (Stall(1, 2, 40 * MS / 3),)),
    ],
)
def test_a_rank_that_is_late_in_some_steps_stalls(
    late_ms: dict[tuple[int, int], int], expected: tuple[Stall, ...]
) -> None:
    """Not in the one in which recordings begin, and not by less than a quarter of a step."""
    assert _found(late_ms, [20, 20, 20, 20]).stalls == expected


def test_ranks_whose_own_work_is_unknown_do_not_stall() -> None:
    """On CPUs, say: a rank may work longer in every step."""
    late_ms = {(1, 2): 15}
    assert _found(late_ms, [20, 20, 20]).stalls
    assert not _found(late_ms, [None, None, None]).stalls


@pytest.mark.parametrize(
    ("late", "own_ms", "slowest", "role"),
    [
        (1, [20, 24, 20], (1,), "straggler"),
        (0, [20, 24, 20], (1,), "unawaited"),
        (0, [20, 20, 20, 24, 24], (3, 4), "unawaited"),
        (3, [20, 20, 20, 24, 24], (3, 4), "straggler"),
    ],
)
def test_the_slowest_have_a_role(
    late: int, own_ms: Sequence[float], slowest: tuple[int, ...], role: str
) -> None:
    """The others wait for them, or not; no other rank has one."""
    found = _found({(step, late): 4 for step in range(4)}, own_ms)
    roles = {one.rank: one.role for one in found.stragglers}
    assert found.slowest_ranks == slowest
    assert roles == {rank: role if rank in slowest else None for rank in range(len(own_ms))}


def test_costs_are_told_per_step_and_outside_of_steps() -> None:
    found = _found({(1, 1): 4, (2, 1): 4}, [20, 20, 20])
    assert [one.cost_in_steps_ns for one in found.stragglers] == [16 * MS, 0, 0]
    assert found.stragglers[0].cost_to_each_ns == 2 * MS
    outside = judge_waits(replace(found, steps=())).stragglers[0]
    assert (outside.cost_in_steps_ns, outside.awaited_outside_steps) == (0, False)  # 8 of 160 ms
    gpus = tuple(replace(one, span_ns=150 * MS) for one in found.ranks)
    assert judge_waits(replace(found, ranks=gpus, steps=())).stragglers[0].awaited_outside_steps


@pytest.mark.parametrize(
    ("bubbles_ms", "compute_ms", "expected"),
    [
        ((40, 20), (100, 100), Bubble(0, 0.25, in_pipeline=False, busiest=None, longer_ns=None)),
        ((40, 20), (100, 130), Bubble(0, 0.25, in_pipeline=False, busiest=1, longer_ns=30 * MS)),
        ((8, 8), (100, 100), None),
    ],
    ids=["even stages", "a longer stage", "short ones"],
)  # fmt: skip
def test_the_largest_bubble_is_told(
    bubbles_ms: Sequence[int], compute_ms: Sequence[int], expected: Bubble | None
) -> None:
    found = _found({}, [20, 20])
    ranks = tuple(
        replace(one, bubble_ns=bubble * MS, compute_ns=ms * MS)
        for one, bubble, ms in zip(found.ranks, bubbles_ms, compute_ms, strict=True)
    )
    assert judge_waits(replace(found, ranks=ranks)).bubble == expected


@pytest.mark.parametrize(
    ("devices", "slow", "whole"),
    [
        ([0, 1, 0, 1], (2, 3), True),
        ([0, 1, 0, 1], (1, 2), False),
        ([0, 0, 0, 0], (2,), False),  # each process sees one device only
    ],
)
def test_the_slowest_may_be_those_of_a_host(
    devices: Sequence[int], slow: Sequence[int], *, whole: bool
) -> None:
    found = _found({}, [24 if rank in slow else 20 for rank in range(4)])
    ranks = [replace(one, device=device) for one, device in zip(found.ranks, devices, strict=True)]
    judged = judge_waits(replace(found, ranks=tuple(ranks)))
    assert sorted(judged.slowest_ranks) == [*slow]
    assert judged.slowest_are_a_host is whole


def test_waits_for_a_rank_without_collectives_are_unknown() -> None:
    found = _found({}, [20, 20])
    without = [replace(one, of=0) for one in found.stragglers]
    judged = judge_waits(replace(found, stragglers=tuple(without)))
    costs = [(one.cost_in_steps_ns, one.cost_to_each_ns) for one in judged.stragglers]
    assert costs == [(None, None)] * 2
