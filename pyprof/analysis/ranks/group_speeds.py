"""How fast collectives moved data, by kind and size; which process group is slower than its like.

Bandwidths are those of nccl-tests: algorithm bytes by transfer time, and bus bytes by the same
(doc/PERFORMANCE.md there; `ops.torch.collectives` has the factors). Waiting is no part of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.collective_kinds import group_by_key
from pyprof.analysis.ranks.match import spans
from pyprof.analysis.ranks.stragglers import of_others
from pyprof.arrays import sum_if_known
from pyprof.gpu.roofline import per_second
from pyprof.ops.torch.collectives import bus_factor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.analysis.ranks.collective_kinds import CollectiveKey
    from pyprof.analysis.ranks.match import Group
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.analysis.ranks.waiting import Waits


_SLOWER = 1.25
"""A group is slow from this multiple of similar groups' transfer time on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpeed:
    """Collectives of one kind, algorithm and size in one process group, or in similar ones."""

    key: CollectiveKey
    ranks: int | None
    """In the group; None if unknown."""
    groups: tuple[Group, ...]
    calls: int
    wait_ns: float
    """The mean over ranks and calls: a rank waits for the last to come."""
    transfer_ns: float | None
    """The median; None if every transfer is below the clocks' residual."""
    total_ns: int | None
    """Total transfer time."""
    total_bytes: int | None
    """Algorithm bytes that a rank sends in all calls; None if unknown."""

    @property
    def like(self) -> tuple[object, ...]:
        """What similar groups have in common."""
        return *self.key.like, len(self.groups[0].ranks)

    @property
    def algorithm_rate(self) -> float | None:
        """Algorithm bytes per s, for mixed sizes total by total; None if either is unknown."""
        if self.key.mixed:
            return per_second(self.total_bytes, self.total_ns)
        return per_second(self.key.bytes, self.transfer_ns)

    @property
    def bus_rate(self) -> float | None:
        """Bus bytes per s; None if bytes, kind, ranks or transfer are not known."""
        rate, kind = self.algorithm_rate, self.key.kind
        if rate is None or kind is None or self.ranks is None:
            return None
        return rate * bus_factor(kind, self.ranks)


@dataclass(frozen=True, slots=True)
class SlowGroup:
    """A group slower than the median of groups of its size in the same collectives."""

    speed: GroupSpeed
    usual_ns: float
    like: int
    """How many similar groups it is compared with."""

    @property
    def times(self) -> float:
        """How many times as long as usual it takes."""
        return (self.speed.transfer_ns or 0.0) / self.usual_ns

    @property
    def lost_ns(self) -> float:
        """How much longer all of its collectives took."""
        return ((self.speed.transfer_ns or 0.0) - self.usual_ns) * self.speed.calls

    @property
    def label(self) -> str:
        """The ranks, formatted for people."""
        return spans(self.speed.groups[0].ranks.tolist())


def measure_groups(columns: Collectives, waits: Sequence[Waits]) -> list[GroupSpeed]:
    """Total the collectives of each group by kind, algorithm and bytes."""
    speeds = []
    for one in waits:
        for key, chosen in group_by_key(columns, one):
            has_transfer = one.transfer_ns[chosen] >= 0
            moved = one.transfer_ns[chosen][has_transfer]
            size = one.bytes[chosen][has_transfer]
            speed = GroupSpeed(
                key=key,
                ranks=one.group.size,
                groups=(one.group,),
                calls=len(chosen),
                wait_ns=int(one.wait_ns[:, chosen].sum()) / int(one.there[:, chosen].sum()),
                transfer_ns=float(np.median(moved)) if len(moved) else None,
                total_ns=int(moved.sum()) if len(moved) else None,
                total_bytes=int(size.sum()) if len(moved) and (size >= 0).all() else None,
            )
            speeds.append(speed)
    return speeds


def join_alike(speeds: Iterable[GroupSpeed]) -> list[GroupSpeed]:
    """Join the speeds of similar groups, those with most transfer and waiting first."""
    speeds_by_likeness: dict[tuple[object, ...], list[GroupSpeed]] = {}
    for speed in speeds:
        speeds_by_likeness.setdefault(speed.like, []).append(speed)
    joined = [_joined(same) for same in speeds_by_likeness.values()]
    return sorted(
        joined,
        key=lambda one: (
            -((one.total_ns or 0) + one.wait_ns * one.calls),
            one.key.kind or "",
            one.key.bytes or 0,
            one.ranks or 0,
        ),
    )


def _joined(same: Sequence[GroupSpeed]) -> GroupSpeed:
    calls = sum(one.calls for one in same)
    moved = [one.transfer_ns for one in same if one.transfer_ns is not None]
    totals = [one.total_ns for one in same if one.total_ns is not None]
    sizes = [one.total_bytes for one in same if one.total_ns is not None]
    first = same[0]
    mean = sum_if_known([one.key.bytes and one.key.bytes * one.calls for one in same])
    return GroupSpeed(
        key=replace(first.key, bytes=None if mean is None else mean // calls),
        ranks=first.ranks,
        groups=tuple(group for one in same for group in one.groups),
        calls=calls,
        wait_ns=sum(one.wait_ns * one.calls for one in same) / calls,
        transfer_ns=float(np.median(moved)) if moved else None,
        total_ns=sum(totals) if totals else None,
        total_bytes=sum_if_known(sizes) if sizes else None,
    )


def slow_groups(speeds: Iterable[GroupSpeed]) -> list[SlowGroup]:
    """Find groups that are slower than similar ones, the one that loses most time first."""
    speeds_by_likeness: dict[tuple[object, ...], list[GroupSpeed]] = {}
    for speed in speeds:
        if speed.transfer_ns is not None and speed.key.kind is not None and not speed.key.mixed:
            speeds_by_likeness.setdefault(speed.like, []).append(speed)
    slow = []
    for same in speeds_by_likeness.values():
        times = np.array([one.transfer_ns for one in same], float)
        if len(same) > 1:
            usual = of_others(times)
            slow += [
                SlowGroup(same[index], float(usual[index]), len(same) - 1)
                for index in np.flatnonzero(times > _SLOWER * usual).tolist()
            ]
    return sorted(slow, key=lambda one: (-one.lost_ns, one.label))
