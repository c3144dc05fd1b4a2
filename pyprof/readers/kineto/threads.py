"""Which thread ran the forward op of a backward op: PyTorch numbers threads in its own way."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.readers.kineto.columns import Threads, nanoseconds

if TYPE_CHECKING:
    from pyprof.readers.kineto.columns import Ints
    from pyprof.readers.kineto.ranges import Columns
    from pyprof.readers.kineto.stream import Event


class Flows:
    """Arrows from forward ops to backward ops, where the trace draws them."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._numbers: dict[object, int] = {}
        self._ends: list[tuple[int, float, bool, int]] = []
        """Number of the id, time, whether it is the head, row of threads."""

    def add(self, events: list[Event]) -> None:
        """Gather the ends of arrows."""
        for event in events:
            name = event.get("id")
            if type(name) not in (int, str):
                continue
            number = self._numbers.setdefault(name, len(self._numbers))
            thread = self._threads.row(event.get("pid"), event.get("tid"))
            self._ends.append((number, event["ts"], event.get("ph") != "s", thread))

    def votes(self, ranges: Columns) -> Ints:
        """Give pairs (PyTorch's number, row of threads), one for each arrow.

        Ids count from 1 in each window of a capture: an arrow is a tail and the next head of an id.
        """
        ends = sorted(self._ends)
        both = [
            (tail[3], head)
            for tail, head in pairwise(ends)
            if tail[0] == head[0] and (tail[2], head[2]) == (False, True)
        ]
        starts = nanoseconds([head[1] for _, head in both])
        arrows = {
            (head[3], start): tail
            for (tail, head), start in zip(both, starts.tolist(), strict=True)
        }
        rows = np.flatnonzero(ranges.forward > 0)
        places = zip(ranges.thread[rows].tolist(), ranges.start[rows].tolist(), strict=True)
        pairs = [
            (number, arrows[place])
            for number, place in zip(ranges.forward[rows].tolist(), places, strict=True)
            if place in arrows
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _matches(ranges: Columns) -> Ints:
    """Give pairs as `Flows.votes` does, one for each sequence number found on both sides.

    A forward op has the number 0 for its own forward thread.
    """
    ahead = (ranges.seq >= 0) & (ranges.forward == 0)
    known = np.unique(np.stack([ranges.seq[ahead], ranges.thread[ahead]]), axis=1)
    behind = ranges.forward > 0
    wanted = np.unique(np.stack([ranges.seq[behind], ranges.forward[behind]]), axis=1)
    first = np.searchsorted(known[0], wanted[0], side="left")
    counts = np.searchsorted(known[0], wanted[0], side="right") - first
    number = np.repeat(wanted[1], counts)
    place = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return np.stack([number, known[1][place]], axis=1)


def forward_threads(ranges: Columns, flows: Flows) -> pa.Array:
    """Give each backward op the row of the thread that ran its forward op; else null.

    Arrows decide; a number that has none goes to the thread that shares most sequence numbers.
    """
    rows: dict[int, int] = {}
    for votes in (_matches(ranges), flows.votes(ranges)):
        pairs, counts = np.unique(votes, axis=0, return_counts=True)
        rows |= {int(n): int(row) for n, row in pairs[np.argsort(counts, kind="stable")]}
    numbers = np.array([0, *rows])
    found = np.array([-1, *rows.values()])
    order = np.argsort(numbers)
    place = np.searchsorted(numbers[order], ranges.forward).clip(max=len(numbers) - 1)
    hit = (numbers[order][place] == ranges.forward) & (ranges.forward > 0)
    return pa.array(found[order][place], pa.int32(), mask=~hit)
