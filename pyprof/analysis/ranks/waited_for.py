"""For whom the others wait, judged by the finished tables: in each step, or in some steps only."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.parallelism import BY_TRAFFIC, PIPELINE
from pyprof.answers.ranks_answer import Bubble, Stall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.answers.ranks_answer import Ranks, RankUse, StragglerCost

_STALL = 0.25
"""A rank stalls in a step in which each other waits for it for this share of a median step."""
_MUCH = 0.05
"""Stalls, waits outside of steps and bubbles count if they take more than this share of time."""


def judge_waits(job: Ranks) -> Ranks:
    """Add who the straggler is, who stalls, and which stage has the largest bubble."""
    job = replace(job, stragglers=tuple(_costs_in_steps(job)))
    roles = _roles(job)
    return replace(
        job,
        stragglers=tuple(replace(one, role=roles.get(one.rank)) for one in job.stragglers),
        slowest_are_a_host=sorted(job.slowest_ranks) in _hosts(job),
        stalls=tuple(_stalls(job)),
        bubble=_bubble(job),
    )


def _costs_in_steps(job: Ranks) -> Iterator[StragglerCost]:
    """Yield the ranks with what the others waited for them in steps; in all, without steps."""
    most, peers, meet = job.step_count, job.peer_count, not job.is_staged
    least_ns = _MUCH * max((one.span_ns for one in job.ranks), default=0)
    # without any, a capture counts as the one that has most
    steps = {one.rank: one.steps or most or 1 for one in job.ranks}
    each = np.array([*steps.values()])
    in_steps: Counter[int] = Counter()
    for step in job.steps:
        in_steps[step.rank] += step.cost_ns
    residual_ns = max((one.clock_residual_ns or 0 for one in job.ranks), default=0)
    for one in job.stragglers:
        own = steps[one.rank]
        cost_ns = in_steps[one.rank] if most else one.cost_ns
        each_ns = cost_ns / max(int(np.minimum(each, own).sum()) - own, 1)
        # waits too short for the clocks would not add up to half of the excess, either
        unseen_ns = 2 * residual_ns * (one.of - one.last) / own
        hidden = meet and one.of > 0 and each_ns + unseen_ns < (one.excess_ns or 0) / 2
        yield replace(
            one,
            cost_in_steps_ns=cost_ns if one.of else None,
            cost_to_each_ns=each_ns if one.of else None,
            awaited_outside_steps=one.cost_ns - cost_ns > least_ns * peers,
            excess_hidden=hidden,
        )


def _roles(job: Ranks) -> Mapping[int, str]:
    """Say in one word what each rank that works longest is to the others."""
    explained = {*job.slowest_ranks}
    slow = [one for one in job.stragglers if one.rank in explained]
    if len(slow) != 1:
        waited_ns = sum(one.cost_in_steps_ns or 0 for one in slow) + job.waited_for_several_ns
        meet = any(one.of for one in slow)
        return dict.fromkeys(explained, "straggler" if waited_ns or not meet else "unawaited")
    one = slow[0]
    # Who takes longest, but comes last less often than any rank would by chance, delays no other,
    # unless they wait for it in those few collectives, or in many by less than clocks can tell.
    is_last = not one.of or one.last * job.rank_count >= one.of
    if is_last or (one.cost_to_each_ns and 2 * one.cost_to_each_ns >= (one.excess_ns or 0)):
        role = "straggler"
    elif job.is_staged:  # who waits for a stage to send is in a bubble
        role = "stage"
    else:
        role = "unawaited" if one.excess_hidden else "unclear"
    return {one.rank: role}


def _hosts(job: Ranks) -> list[list[int]]:
    """Group the ranks by host: on each, devices' numbers begin again at 0. [] if there is one.

    A single rank is no group: its process may see but one of the host's devices.
    """
    hosts: list[list[int]] = [[]]
    for rank, device in sorted({one.rank: one.device for one in job.ranks}.items()):
        if device == 0:
            hosts.append([])
        hosts[-1].append(rank)
    known = [ranks for ranks in hosts if len(ranks) > 1]
    return known if len(known) > 1 else []


def _stalls(job: Ranks) -> list[Stall]:
    """Find steps in which a rank held up the others for long, unless it may have waited itself.

    Without the first step, in which the ranks' recordings begin at different times.
    """
    unknown = any(one.own_ns is None for one in job.stragglers)
    if unknown or job.is_staged or not job.steps:
        return []
    peers, stall_ns = job.peer_count, _STALL * median(one.step_ns or 0 for one in job.ranks)
    explained = {*job.slowest_ranks, *job.waiting_for_missing_ranks}
    unsure = {one.step for one in job.steps if one.rank in explained and one.cost_ns > stall_ns}
    late = (
        one for one in job.steps
        if one.step and one.cost_ns > stall_ns * peers and one.step not in unsure
    )  # fmt: skip
    stalls = []
    for step, ranks in groupby(late, key=lambda one: one.step):
        costs = [*ranks]
        first = max(costs, key=lambda one: one.cost_ns)  # for which the others may have waited
        stalls.append(Stall(step, first.rank, sum(one.cost_ns for one in costs) / peers))
    stalled_ns = sum(one.waited_ns for one in stalls)
    in_most = 2 * len(stalls) > job.step_count  # as if they waited for the slowest
    few = stalled_ns <= _MUCH * max(one.span_ns for one in job.ranks)
    return [] if few or (job.slowest_ranks and in_most) else stalls


def _bubble(job: Ranks) -> Bubble | None:
    """Find the largest bubble, and what shortens it: micro-batches do not help a shorter stage."""

    def share(one: RankUse) -> float:
        return (one.bubble_ns or 0) / one.span_ns

    staged = [one for one in job.ranks if one.bubble_ns is not None and one.span_ns]
    worst = max(staged, key=share, default=None)
    if worst is None or share(worst) <= _MUCH:
        return None
    named = any(axis.role == PIPELINE and axis.evidence != BY_TRAFFIC for axis in job.parallelism)
    longest = max(staged, key=lambda one: one.compute_ns)
    longer_ns = longest.compute_ns - worst.compute_ns
    if 2 * longer_ns <= share(worst) * longest.compute_ns:
        return Bubble(worst.rank, share(worst), named, None, None)
    return Bubble(worst.rank, share(worst), named, longest.rank, longer_ns)
