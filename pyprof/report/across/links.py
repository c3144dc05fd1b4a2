"""How fast collectives moved data, by kind and size; which process group is slower than its like.

Bandwidths are those of nccl-tests: algorithm bytes by transfer time, and bus bytes by the same
(doc/PERFORMANCE.md there; `ops.collectives` has the factors). Waiting is no part of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.gpu.roofline import NS_PER_S
from pyprof.ops.collectives import bus_bytes
from pyprof.report.across.match import Group, spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pyprof.report.across.columns import Columns
    from pyprof.report.across.waiting import Waits

    Ints = NDArray[np.int64]

_SLOWER = 1.25
"""From so many times the transfer time of like groups on, a group is slow."""


@dataclass(frozen=True, slots=True)
class Link:
    """Collectives of one kind, algorithm and size in one process group, or in several alike."""

    kind: str | None
    algorithm: str | None
    bytes: int | None
    ranks: int | None
    """In the group; None where that is not told."""
    groups: tuple[Group, ...]
    calls: int
    wait_ns: float
    """Of a rank, the mean: it waits for the last to come."""
    transfer_ns: float | None
    """The median; None where no transfer can be told from the clocks' residual."""
    total_ns: int | None
    """Transfer in all."""

    @property
    def sort(self) -> tuple[object, ...]:
        """What like links have in common."""
        return (self.kind, self.algorithm, self.bytes, len(self.groups[0].ranks))

    @property
    def algorithm_rate(self) -> float | None:
        """Algorithm bytes per s; None where bytes or transfer are not known."""
        return _rate(self.bytes, self.transfer_ns)

    @property
    def bus_rate(self) -> float | None:
        """Bus bytes per s; None where bytes, kind, ranks or transfer are not known."""
        if self.bytes is None or self.kind is None or self.ranks is None:
            return None
        return _rate(bus_bytes(self.kind, self.bytes, self.ranks), self.transfer_ns)


@dataclass(frozen=True, slots=True)
class SlowLink:
    """A group that takes longer than the median of others of as many ranks for the same."""

    link: Link
    usual_ns: float
    like: int
    """How many others there are."""

    @property
    def times(self) -> float:
        """How many times as long it takes."""
        return (self.link.transfer_ns or 0.0) / self.usual_ns

    @property
    def lost_ns(self) -> float:
        """How much longer all of its collectives took."""
        return ((self.link.transfer_ns or 0.0) - self.usual_ns) * self.link.calls

    @property
    def label(self) -> str:
        """Name the ranks, for people."""
        return spans(self.link.groups[0].ranks.tolist())


def _rate(amount: int | None, time_ns: float | None) -> float | None:
    return None if amount is None or not time_ns else amount / time_ns * NS_PER_S


def links(columns: Columns, waits: Sequence[Waits]) -> list[Link]:
    """Total the collectives of each group by kind, algorithm and bytes."""
    return [
        _link(columns, one, columns.sort[one.rows] == value)
        for one in waits
        for value in np.unique(columns.sort[one.rows]).tolist()
    ]


def _link(columns: Columns, one: Waits, chosen: NDArray[np.bool_]) -> Link:
    row = one.rows[chosen][0]
    moved = one.transfer_ns[chosen]
    moved = moved[moved >= 0]
    size = int(columns.bytes[row])
    return Link(
        columns.text(columns.kinds, columns.kind[row]),
        columns.text(columns.algorithms, columns.algorithm[row]),
        size if size >= 0 else None,
        one.group.size,
        (one.group,),
        int(chosen.sum()),
        int(one.wait_ns[:, chosen].sum()) / int(one.there[:, chosen].sum()),
        float(np.median(moved)) if len(moved) else None,
        int(moved.sum()) if len(moved) else None,
    )


def alike(found: Iterable[Link]) -> list[Link]:
    """Put groups of as many ranks together, the one with most transfer and waiting first."""
    kept: dict[tuple[object, ...], list[Link]] = {}
    for link in found:
        kept.setdefault(link.sort, []).append(link)
    joined = [_joined(same) for same in kept.values()]
    return sorted(joined, key=_dearest_first)


def _dearest_first(one: Link) -> tuple[float, str, int, int]:
    spent = (one.total_ns or 0) + one.wait_ns * one.calls
    return -spent, one.kind or "", one.bytes or 0, one.ranks or 0


def _joined(same: Sequence[Link]) -> Link:
    calls = sum(one.calls for one in same)
    moved = [one.transfer_ns for one in same if one.transfer_ns is not None]
    totals = [one.total_ns for one in same if one.total_ns is not None]
    first = same[0]
    return Link(
        first.kind, first.algorithm, first.bytes, first.ranks,
        tuple(group for one in same for group in one.groups),
        calls,
        sum(one.wait_ns * one.calls for one in same) / calls,
        float(np.median(moved)) if moved else None,
        sum(totals) if totals else None,
    )  # fmt: skip


def slow_links(found: Iterable[Link]) -> list[SlowLink]:
    """Compare each group with others of as many ranks; the one that loses most time first."""
    kept: dict[tuple[object, ...], list[Link]] = {}
    for link in found:
        if link.transfer_ns is not None and link.kind is not None:
            kept.setdefault(link.sort, []).append(link)
    slow = []
    for same in kept.values():
        times = np.array([one.transfer_ns for one in same], float)
        for place, link in enumerate(same):
            others = np.delete(times, place)
            if len(others) and times[place] > _SLOWER * (usual := float(np.median(others))):
                slow.append(SlowLink(link, usual, len(others)))
    return sorted(slow, key=lambda one: (-one.lost_ns, one.label))
