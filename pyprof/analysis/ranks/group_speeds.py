"""How fast collectives moved data, by kind and size; which process group is slower than its like.

Bandwidths are those of nccl-tests: algorithm bytes by transfer time, and bus bytes by the same
(doc/PERFORMANCE.md there; `ops.torch.collectives` has the factors). Waiting is not part of them.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pyprof.analysis.ranks.collective_kinds import group_by_key
from pyprof.analysis.ranks.stragglers import of_others
from pyprof.answers.ranks_answer import CollectiveSpeed, GroupSpeed
from pyprof.arrays import sum_if_known
from pyprof.gpu.roofline import per_second
from pyprof.ops.torch.collectives import bus_factor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.analysis.ranks.waiting import Waits


_SLOWER = 1.25
"""A group is slow from this multiple of similar groups' transfer time on."""
_MIN_CALLS = 3
"""The median of fewer is chance."""


def measure_groups(columns: Collectives, waits: Sequence[Waits]) -> list[GroupSpeed]:
    """Total the collectives of each group by kind, algorithm and bytes; compare similar groups."""
    speeds = []
    for one in waits:
        members = one.group.members
        for key, chosen in group_by_key(columns, one):
            has_transfer = one.transfer_ns[chosen] >= 0
            moved = one.transfer_ns[chosen][has_transfer]
            size = one.bytes[chosen][has_transfer]
            speed = GroupSpeed(
                **asdict(key),
                ranks=one.group.size,
                calls=len(chosen),
                wait_ns=int(one.wait_ns[:, chosen].sum()) / int(one.there[:, chosen].sum()),
                transfer_ns=float(np.median(moved)) if len(moved) else None,
                transfer_total_ns=int(moved.sum()) if len(moved) else None,
                groups=1,
                captured_ranks=len(one.group.ranks),
                total_bytes=int(size.sum()) if len(moved) and (size >= 0).all() else None,
                group=one.group.name,
                named=one.group.named,
                members=members,
            )
            speeds.append(_add_rates(speed))
    return _compare(speeds)


_S = TypeVar("_S", bound=CollectiveSpeed)


def _add_rates(speed: _S) -> _S:
    """Add the bandwidths, as far as bytes, transfer, kind and ranks are known."""
    if speed.mixed:
        rate = per_second(speed.total_bytes, speed.transfer_total_ns)
    else:
        rate = per_second(speed.bytes, speed.transfer_ns)
    if rate is None or speed.kind is None or speed.ranks is None:
        return replace(speed, algorithm_bytes_per_s=rate)
    factor = bus_factor(speed.kind, speed.ranks)
    return replace(speed, algorithm_bytes_per_s=rate, bus_bytes_per_s=rate * factor)


def _collect_similar(speeds: Iterable[GroupSpeed]) -> Iterable[list[GroupSpeed]]:
    speeds_by_likeness: dict[tuple[object, ...], list[GroupSpeed]] = {}
    for one in speeds:
        size = None if one.mixed else one.bytes
        likeness = one.kind, one.algorithm, one.mixed, size, one.captured_ranks
        speeds_by_likeness.setdefault(likeness, []).append(one)
    return speeds_by_likeness.values()


def join_alike(speeds: Iterable[GroupSpeed]) -> list[CollectiveSpeed]:
    """Join the speeds of similar groups, those with most transfer and waiting first."""
    return sorted(
        map(_join_groups, _collect_similar(speeds)),
        key=lambda one: (
            -((one.transfer_total_ns or 0) + one.wait_ns * one.calls),
            one.kind or "",
            one.bytes or 0,
            one.ranks or 0,
        ),
    )


def _join_groups(same: Sequence[GroupSpeed]) -> CollectiveSpeed:
    calls = sum(one.calls for one in same)
    moved = [one.transfer_ns for one in same if one.transfer_ns is not None]
    totals = [one.transfer_total_ns for one in same if one.transfer_total_ns is not None]
    sizes = [one.total_bytes for one in same if one.transfer_total_ns is not None]
    first = same[0]
    mean = sum_if_known([one.bytes and one.bytes * one.calls for one in same])
    joined = CollectiveSpeed(
        kind=first.kind,
        algorithm=first.algorithm,
        bytes=None if mean is None else mean // calls,
        mixed=first.mixed,
        ranks=first.ranks,
        calls=calls,
        wait_ns=sum(one.wait_ns * one.calls for one in same) / calls,
        transfer_ns=float(np.median(moved)) if moved else None,
        transfer_total_ns=sum(totals) if totals else None,
        groups=len(same),
        captured_ranks=first.captured_ranks,
        total_bytes=sum_if_known(sizes) if sizes else None,
    )
    return _add_rates(joined)


def _compare(speeds: Sequence[GroupSpeed]) -> list[GroupSpeed]:
    """State what groups lose that are slower than similar ones."""
    slower = {}
    for same in _collect_similar(
        one
        for one in speeds
        if one.calls >= _MIN_CALLS
        and not (one.transfer_ns is None or one.kind is None or one.mixed)
    ):
        times = np.array([one.transfer_ns for one in same], float)
        if len(same) > 1:
            usual = of_others(times)
            for index in np.flatnonzero(times > _SLOWER * usual).tolist():
                slower[same[index]] = replace(
                    same[index],
                    times_like_groups=float(times[index] / usual[index]),
                    like_groups=len(same) - 1,
                    usual_ns=float(usual[index]),
                    lost_ns=float(times[index] - usual[index]) * same[index].calls,
                )
    return [slower.get(one, one) for one in speeds]


def slow_groups(speeds: Iterable[GroupSpeed]) -> list[GroupSpeed]:
    """Return the groups that are slower than similar ones, the one that loses most time first."""
    slow = [one for one in speeds if one.times_like_groups is not None]
    return sorted(slow, key=lambda one: (-one.lost_ns, one.members))
